import { expect } from 'vitest';
import type {
  WireAudit,
  WireBatch,
  WireCapabilities,
  WireChanges,
  WireContext,
  WireErased,
  WireHit,
  WireMemory,
  WirePage,
  WireStats,
  WireUsers,
  WireVersions,
} from './wire.ts';

/** Sends one request; in process or over a socket. */
export type Send = (path: string, init?: RequestInit) => Promise<Response>;
export type Query = Readonly<Record<string, string | number | readonly string[] | undefined>>;
export type Fields = Readonly<Record<string, unknown>>;

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; undefined when there is none. */
  readonly body: unknown;
}

const queryString = (query: Query): string => {
  const given = Object.entries(query).flatMap(([key, value]) =>
    [value ?? []].flat().map((one) => [key, String(one)] as [string, string]),
  );
  return new URLSearchParams(given).toString();
};

const replyOf = async (response: Response): Promise<Reply> => {
  const text = await response.text();
  const json = response.headers.get('content-type')?.startsWith('application/json') === true && text !== '';
  return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : undefined };
};

const bodyOf = async <T>(pending: Promise<Reply>, status: number): Promise<T> => {
  const reply = await pending;
  expect(reply.status, reply.text).toBe(status);
  return reply.body as T;
};

/** `ask` and `tell` answer whatever comes; the verbs below insist on success and return the resource. */
export const clientOf = (send: Send) => {
  const ask = async (path: string, query: Query = {}, headers: Record<string, string> = {}): Promise<Reply> => {
    const search = queryString(query);
    return replyOf(await send(search === '' ? path : `${path}?${search}`, { headers }));
  };
  /** `raw` is sent as it is; anything else as JSON. */
  const tell = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply> =>
    replyOf(
      await send(path, {
        method,
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  const raw = async (path: string, init?: RequestInit): Promise<Reply> => replyOf(await send(path, init));
  const byId = (id: string): string => `/memories/${encodeURIComponent(id)}`;
  const erased = (user: string) =>
    bodyOf<WireErased>(tell('DELETE', `/users/${encodeURIComponent(user)}/memories`), 200);

  return {
    ask,
    tell,
    raw,
    byId,
    add: (fields: Fields) => bodyOf<WireMemory>(tell('POST', '/memories', fields), 201),
    /** With an Idempotency-Key, if one is given. */
    batch: async (memories: readonly unknown[], key?: string) =>
      (
        await bodyOf<WireBatch>(
          tell('POST', '/memories/batch', { memories }, key === undefined ? {} : { 'idempotency-key': key }),
          200,
        )
      ).results,
    get: (id: string) => bodyOf<WireMemory>(ask(byId(id)), 200),
    update: (id: string, fields: Fields) => bodyOf<WireMemory>(tell('PATCH', byId(id), fields), 200),
    versions: (id: string, query: Query = {}) => bodyOf<WireVersions>(ask(`${byId(id)}/versions`, query), 200),
    restore: (id: string, version: number) => bodyOf<WireMemory>(tell('POST', `${byId(id)}/restore`, { version }), 200),
    remove: (id: string) => bodyOf<undefined>(tell('DELETE', byId(id)), 204),
    list: (query: Query) => bodyOf<WirePage>(ask('/memories', query), 200),
    search: async (query: Query) => (await bodyOf<{ results: WireHit[] }>(ask('/memories/search', query), 200)).results,
    context: (fields: Fields) => bodyOf<WireContext>(tell('POST', '/context', fields), 200),
    audit: async (query: Query) => (await bodyOf<WireAudit>(ask('/audit', query), 200)).entries,
    changes: (query: Query = {}) => bodyOf<WireChanges>(ask('/changes', query), 200),
    users: (query: Query = {}) => bodyOf<WireUsers>(ask('/users', query), 200),
    stats: (user_id: string) => bodyOf<WireStats>(ask('/stats', { user_id }), 200),
    erase: async (user: string) => (await erased(user)).deleted,
    receipt: async (user: string) => (await erased(user)).receipt,
    capabilities: () => bodyOf<WireCapabilities>(ask('/capabilities'), 200),
  };
};

export type Client = ReturnType<typeof clientOf>;
