/** The gRPC code that goes with each HTTP status, as `rpcStatus` bodies carry it. */
const CODES = { 400: 3, 404: 5, 409: 6, 429: 8, 500: 13, 503: 14 } as const;
export type RefusalStatus = keyof typeof CODES;

/** A request answered with an error: its status, and a body of the interface's `rpcStatus`. */
export class Refusal extends Error {
  readonly status: RefusalStatus;

  constructor(status: RefusalStatus, message: string) {
    super(message);
    this.name = 'Refusal';
    this.status = status;
  }
}

export const bodyOf = ({ status, message }: Refusal): object => ({ code: CODES[status], message, details: [] });

/** Throws a 400 with this message unless `fine`. */
export function check(fine: boolean, message: string): asserts fine {
  if (!fine) throw new Refusal(400, message);
}

/** What goes out. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** What the text says as JSON, where the interface asks for JSON. */
  readonly body?: object;
}

export const jsonReply = (status: number, body: object, headers: Reply['headers'] = {}): Reply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  text: JSON.stringify(body),
  body,
});

/** Outside of the interface: what layers in front of the service answer. */
export const textReply = (status: number, text: string): Reply => ({
  status,
  headers: { 'content-type': 'text/plain' },
  text,
});
