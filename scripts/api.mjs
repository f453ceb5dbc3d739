// Compares the types of each entry point with its report in etc/. With --local, it writes the reports that changed.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';

const local = process.argv.includes('--local');
const { name: packageName, exports } = JSON.parse(readFileSync('package.json', 'utf8'));

// The reports show what these find; with any other finding, the check fails.
const SHOWN = [
  'ae-forgotten-export',
  'ae-incompatible-release-tags',
  'ae-internal-missing-underscore',
  'ae-internal-mixed-release-tag',
  'ae-unresolved-inheritdoc-reference',
  'ae-unresolved-inheritdoc-base',
];
const base = {
  projectFolder: process.cwd(),
  compiler: { tsconfigFilePath: '<projectFolder>/tsconfig.json' },
  newlineKind: 'crlf',
  docModel: { enabled: false },
  messages: {
    compilerMessageReporting: { default: { logLevel: 'error' } },
    extractorMessageReporting: {
      default: { logLevel: 'error' },
      'ae-missing-release-tag': { logLevel: 'none' },
      'ae-undocumented': { logLevel: 'none' },
      ...Object.fromEntries(SHOWN.map((id) => [id, { logLevel: 'warning', addToApiReportFile: true }])),
    },
    tsdocMessageReporting: { default: { logLevel: 'error' } },
  },
};

/** The name of the report and the declarations of each entry point that has some. */
function entryPoints() {
  const withTypes = Object.entries(exports).filter(([, conditions]) => conditions.import?.types !== undefined);
  return withTypes.map(([path, conditions]) => [packageName + path.slice(1).replaceAll('/', '-'), conditions.import.types]);
}

/** Whether the types of an entry point are as its report says. */
function check(reportName, types) {
  const config = ExtractorConfig.prepare({
    configObject: {
      ...base,
      mainEntryPointFilePath: resolve(types),
      apiReport: {
        enabled: true,
        reportFileName: reportName,
        reportFolder: '<projectFolder>/etc',
        reportTempFolder: '<projectFolder>/.cache',
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: resolve('package.json'),
  });
  const report = `etc/${reportName}.api.md`;
  const { succeeded, apiReportChanged } = Extractor.invoke(config, {
    localBuild: local,
    printApiReportDiff: !local,
    messageCallback: (message) => {
      // The text of a change names another command than ours.
      message.handled = /^console-(preamble|compiler-version-notice|api-report-(not-)?copied)$/.test(message.messageId);
    },
  });
  if (apiReportChanged) {
    const next = local ? 'it is written, commit it.' : 'run "npm run build && npm run api -- --local" and commit it.';
    console.log(`The public types differ from ${report}: ${next}`);
  }
  return succeeded && (local || !apiReportChanged);
}

const results = entryPoints().map(([reportName, types]) => check(reportName, types));
if (results.includes(false)) {
  process.exitCode = 1;
} else {
  console.log(`${results.length} entry points have the types that etc/ says.`);
}
