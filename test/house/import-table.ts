import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import * as ts from 'typescript';

const NEST = '@nestjs/common @nestjs/core rxjs';
/** The files beside the rooms of Nest that decorators are made of. */
const SERVICE = 'lib/nest/lock.service lib/nest/refused-call lib/nest/injection-token lib/nest/current-lock';
const SQL = 'lib/core lib/kit lib/sql';
const CONTRACT = 'lib/core/seam/lock-store lib/core/words/errors lib/contract';

/**
 * The rooms of the code, and where each may import from besides itself: a folder with all in it, `folder/*` for the
 * files that stand in the folder itself, a file, or a package. After `type:`, types alone. A file belongs to the room
 * with the longest name.
 */
export const ROOMS: Readonly<Record<string, string>> = {
  'lib/core/words': 'ms',
  'lib/core/seam': 'lib/core/words',
  'lib/core/calls': 'lib/core/words',
  'lib/core/leases': 'lib/core/words lib/core/seam lib/core/calls',
  'lib/core/transactions': 'lib/core/words lib/core/calls lib/core/leases',
  'lib/core/entering': 'lib/core/words lib/core/seam lib/core/calls lib/core/leases lib/core/transactions',
  'lib/core/watching': 'lib/core/words lib/core/seam type:lib/core/leases type:lib/core/entering',
  'lib/leader': 'lib/core',
  'lib/operate/peers': 'lib/core',
  'lib/locks.ts': 'lib/core lib/leader lib/operate/peers',
  'lib/nest': `lib/core lib/leader lib/operate/peers lib/locks lib/memory lib/nest/application lib/nest/methods ${NEST}`,
  'lib/nest/application': 'lib/core @nestjs/common @nestjs/core',
  'lib/nest/keys': 'lib/core acorn',
  'lib/nest/methods': `lib/core lib/leader ${SERVICE} lib/nest/keys lib/nest/application/made-by-nest lib/nest/application/open-transaction ${NEST}`,
  'lib/kit': 'lib/core',
  'lib/memory': 'lib/core lib/kit',
  'lib/sql': 'lib/core lib/kit',
  'lib/mysql': `${SQL} lib/mysql/connections lib/mysql/procedures lib/mysql/row-lock`,
  'lib/mysql/connections': `${SQL} lib/mysql/*`,
  'lib/mysql/procedures': `${SQL} lib/mysql/*`,
  'lib/mysql/row-lock': 'lib/core lib/sql',
  'lib/postgres': `${SQL} lib/postgres/functions lib/postgres/listening lib/postgres/row-lock`,
  'lib/postgres/functions': SQL,
  'lib/postgres/listening': '',
  'lib/postgres/row-lock': 'lib/core lib/sql lib/postgres/*',
  'lib/redis': 'lib/core lib/kit lib/redis/connection/node-redis ioredis',
  'lib/redis/connection/node-redis': 'lib/core lib/redis/connection/* lib/redis/scripts',
  'lib/quorum': 'lib/core lib/kit lib/redis',
  'lib/contract': CONTRACT,
  'lib/contract/rules': CONTRACT,
  'lib/contract/rules/shared-keys': CONTRACT,
  'lib/operate/telemetry': 'lib/core',
  'lib/operate/otel': 'lib/core lib/operate/telemetry @opentelemetry/api',
  'lib/operate/prometheus': 'lib/core lib/operate/telemetry prom-client',
  'lib/tickets': 'lib/core lib/nest @nestjs/common type:rxjs',
  'lib/testing': 'lib/core lib/memory type:lib/nest',
  // The entry points, and what is not at home in a folder.
  lib: 'lib',
  'console/cli':
    'lib/core lib/operate/peers lib/locks lib/kit lib/redis lib/quorum lib/sql lib/postgres lib/mysql lib/contract ioredis mysql2 pg redis',
  'console/page': 'lib/core lib/nest lib/operate/peers @nestjs/common @nestjs/core rxjs',
  'console/page/app': 'lib/core/words type:lib/operate/peers type:console/page/* preact',
};

/** The room whose code runs in browsers. */
const IN_BROWSERS = 'console/page/app';

/** An import of a file: a path from the top of the project without its ending, or a package. */
export interface Import {
  readonly name: string;
  readonly isType: boolean;
}

const SOURCE = /\.(tsx?|js)$/;

/** All imports in a source, of each kind that TypeScript has. */
export function importsIn(file: string, text: string): Import[] {
  const found: Import[] = [];
  const add = (specifier: ts.Node | undefined, isType: boolean): void => {
    if (specifier && ts.isStringLiteralLike(specifier)) {
      const { text: name } = specifier;
      found.push({ name: name.startsWith('.') ? join(dirname(file), name).replace(SOURCE, '') : name, isType });
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, node.importClause?.isTypeOnly === true);
    } else if (ts.isExportDeclaration(node)) {
      add(node.moduleSpecifier, node.isTypeOnly);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true);
    } else if (
      ts.isCallExpression(node) &&
      (node.expression.kind === ts.SyntaxKind.ImportKeyword || node.expression.getText() === 'require')
    ) {
      add(node.arguments[0], false);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true));
  return found;
}

/** The room of a file, or of a path without its ending. */
export function roomOf(path: string): string | undefined {
  const rooms = Object.keys(ROOMS).filter((room) => path.replace(SOURCE, '') === room.replace(SOURCE, '') || path.startsWith(`${room}/`));
  return rooms.toSorted((one, other) => other.length - one.length)[0];
}

/** The entry of the table by which a room may have an import: '' for what needs none, undefined where it may not. */
export function permissionFor(room: string, { name, isType }: Import): string | undefined {
  if (isBuiltin(name)) {
    return room === IN_BROWSERS ? undefined : '';
  }
  if (roomOf(name) === room) {
    return '';
  }
  const entries = (ROOMS[room] as string).split(' ').filter(Boolean);
  return entries.find((entry) => {
    const place = entry.replace('type:', '');
    const isThere = place.endsWith('/*') ? dirname(name) === place.slice(0, -2) : name === place || name.startsWith(`${place}/`);
    return isThere && (isType || !entry.startsWith('type:'));
  });
}

/** The sources of the library and of the console. */
export function sources(): string[] {
  return ['lib', 'console'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => join(folder, file)),
  );
}

export const read = (file: string): string => readFileSync(file, 'utf8');
