/** One thing that was looked at. Holds no contents, user ids or credentials. */
export interface Finding {
  readonly area:
    | 'configuration'
    | 'connection'
    | 'privileges'
    | 'extension'
    | 'mapping'
    | 'embedding'
    | 'ingestion'
    | 'indexes'
    | 'size';
  /** `problem`: the gateway would not start, or not serve. `warning`: it serves, but not as well as it could. */
  readonly level: 'ok' | 'warning' | 'problem';
  /** One sentence without its full stop. */
  readonly message: string;
  /** What an operator may run against it, statement by statement, each with its reason. */
  readonly remedies?: readonly Remedy[];
}

export interface Remedy {
  readonly sql: string;
  readonly reason: string;
}
