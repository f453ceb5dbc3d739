import { describeLockPlace } from './lock-place.js';
import { OPERATOR } from './operations/operator.guard.js';
import type { Settings } from './settings.js';

/** The welcome to a newcomer after the start: the parts that are in use, and the next steps to try. */
export function welcome(url: string, { locks, databaseUrl, operatorToken, isTokenSet }: Settings, database: string): string {
  const curl = `curl -w '\\n'`;
  const json = `-H 'content-type: application/json'`;
  return `
The balance service listens on ${url}.
  Balances: ${database}.
  Locks:    ${describeLockPlace(locks)}${locks.store === 'memory' ? ' (set LOCK_STORE to lock across processes)' : ''}.
${
  databaseUrl !== undefined && locks.store === 'memory'
    ? '  Take care: a second process on this database would not be locked out. Set LOCK_STORE=postgres for both.\n'
    : ''
}
Customers 1 to 10 start with 100.00. Try:

  ${curl} ${url}/customers/1/balance
  ${curl} ${url}/customers/1/credit   ${json} -d '{"amount":"12.50"}'
  ${curl} ${url}/customers/1/debit    ${json} -d '{"amount":"1000.00"}'
  ${curl} ${url}/customers/1/transfer ${json} -d '{"to":"2","amount":"20.00"}'

A hundred credits to customer 3, twenty at a time; none is lost, and the balance is 200.00 in the end:

  seq 100 | xargs -P 20 -I{} curl -s -o /dev/null ${url}/customers/3/credit ${json} -d '{"amount":"1.00"}'
  ${curl} ${url}/customers/3/balance

Ten statements of customer 4, each two seconds of the ERP: three at once, the others wait, and after 5 s it is 429:

  seq 10 | xargs -P 10 -I{} curl -s -o /dev/null -w '%{http_code} after %{time_total} s\\n' ${url}/customers/4/statement

The health and the metrics of the locks:

  ${curl} ${url}/health/ready
  ${curl} ${url}/metrics

Who holds what, live, in a browser: ${url}/locks (user ${OPERATOR}, password ${isTokenSet ? 'from OPERATOR_TOKEN' : operatorToken})

Traces: OTEL=console npm start. What happens without the lock: npm run demo
`;
}
