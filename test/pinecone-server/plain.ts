import type { Pinecone } from './start.ts';

export interface PlainAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The body's JSON, or its text where it is none. */
  readonly body: unknown;
}

export const HEADERS = {
  'api-key': 'key',
  'x-pinecone-api-version': '2026-04',
  'content-type': 'application/json',
} as const;

/** Asks without the SDK, for what the SDK would not send or does not show. */
export async function ask(
  { url }: Pick<Pinecone, 'url'>,
  path: string,
  {
    method = 'GET',
    body,
    headers = HEADERS,
  }: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<PlainAnswer> {
  const response = await fetch(url + path, { method, headers, body });
  const text = await response.text();
  const json = response.headers.get('content-type') === 'application/json';
  return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text };
}

export const post = (server: Pick<Pinecone, 'url'>, path: string, body: unknown): Promise<PlainAnswer> =>
  ask(server, path, { method: 'POST', body: JSON.stringify(body) });

export const refused = (message: unknown, code = 3) => ({ code, message, details: [] });
