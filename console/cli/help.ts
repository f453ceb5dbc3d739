/** What `--help` prints. */
export const HELP = `Usage: nestjs-distributed-lock <command> [options]

Shows the locks of nestjs-distributed-lock, also while the application is down.

Commands:
  list [PREFIX]          the locks that are held, the oldest first
  inspect KEY            one lock: who holds it, and who waits in which order
  top                    the oldest locks and the longest queues, each second; q quits, / filters
  incidents [PREFIX]     what went wrong lately: losses, forced releases, deadlocks, refusals, outages
  release KEY --fence N  releases a lock by force, if it is held at that fence
  processes              the processes that answer
  doctor                 checks the servers of the locks

Where the locks are (one of them):
  --redis URL            or LOCKS_REDIS in the environment
  --quorum URL,URL,URL   or LOCKS_QUORUM
  --postgres URL         or LOCKS_POSTGRES; several databases with commas between them

Options:
  --prefix NAME          the prefix of LockModule (default: lock)
  --schema NAME          the schema in PostgreSQL (default: distributed_lock)
  --limit N              the most locks that are listed (default: 1000)
  --since TIME           how far back incidents are listed, such as 90s or 1h (default: 24h)
  --json                 prints JSON
  --reason TEXT          why a lock is released, for the logs; asked for unless --yes is given
  --by NAME              who releases it (default: the user of this machine)
  --yes                  releases without asking
  --help, --version

Others on this machine can read the options of a program. Pass a URL with a password in the environment.

Exit codes: 0 fine; 1 not held, or the doctor found a failure; 2 wrong use; 3 the store is away or refused.
`;
