/** How a worker reaches the locks: through proxies of its own, so that faults can strike it alone. */
export type WorkerSource =
  | { readonly kind: 'single'; readonly url: string }
  | { readonly kind: 'postgres'; readonly url: string }
  | { readonly kind: 'quorum'; readonly urls: readonly string[]; readonly longestLeaseMs: number }
  | {
      readonly kind: 'cluster' | 'sentinel';
      /** How many replicas confirm a grant. */
      readonly minReplicas: number;
      readonly ports: readonly number[];
      readonly natMap: Readonly<Record<string, { host: string; port: number }>>;
    };

/** How long a call waits unless it says otherwise, in leases. */
export const WAIT_LEASES = 6;

/** What a worker process is told when it starts. */
export interface WorkerOptions {
  readonly name: string;
  /** Whether it is there before any fault. */
  readonly isFirst: boolean;
  readonly seed: number;
  readonly source: WorkerSource;
  readonly registers: string;
  readonly folder: string;
  readonly keys: { readonly busy: readonly string[]; readonly quiet: readonly string[] };
  readonly leaseMs: number;
}

/** What the nemesis and the workers say to each other. */
export type WorkerMessage =
  | { readonly type: 'started' }
  | { readonly type: 'stop' }
  | { readonly type: 'block'; readonly ms: number }
  | { readonly type: 'forceOld'; readonly key: string }
  | { readonly type: 'wall'; readonly offsetMs: number }
  | {
      readonly type: 'ticket';
      readonly from: string;
      readonly id: number;
      readonly key: string;
      readonly owner: string;
      readonly ticket: string;
    }
  | { readonly type: 'ticketDone'; readonly to: string; readonly id: number };
