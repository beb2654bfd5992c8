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
