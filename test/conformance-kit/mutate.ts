import { isRecord, type Send } from '../../src/conformance/kit.ts';

/** How mutants are made: requests and answers of a correct implementation are changed on their way. */

interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly body: Record<string, unknown>;
}
export type Body = Record<string, unknown>;
export type Mutant = (send: Send) => Send;

const BASE = 'http://mutant';
export const askedBy = (path: string, init: RequestInit): Asked => {
  const body: unknown = typeof init.body === 'string' && init.body.startsWith('{') ? attempt(init.body) : {};
  return { method: init.method ?? 'GET', url: new URL(path, BASE), body: isRecord(body) ? body : {} };
};
function attempt(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** `GET /memories/{id}` and the like: method and path, where `{id}` is any id. */
const PATTERNS = {
  capabilities: /^GET \/capabilities$/,
  health: /^GET \/healthz$/,
  add: /^POST \/memories$/,
  get: /^GET \/memories\/(?!search)[^/]+$/,
  update: /^PATCH \/memories\/[^/]+$/,
  delete: /^DELETE \/memories\/[^/]+$/,
  list: /^GET \/memories$/,
  search: /^GET \/memories\/search$/,
  audit: /^GET \/audit$/,
  context: /^POST \/context$/,
  any: /^/,
} as const;
type Where = keyof typeof PATTERNS;
export const isAt = (where: Where, { method, url }: Asked) => PATTERNS[where].test(`${method} ${url.pathname}`);

/** Changes the answers of a call. */
export const answer =
  (where: Where, change: (response: Response, asked: Asked) => Response | Promise<Response>): Mutant =>
  (send) =>
  async (path, init, as) => {
    const asked = askedBy(path, init);
    const response = await send(path, init, as);
    return isAt(where, asked) ? change(response, asked) : response;
  };
/** Changes the JSON of successful answers. */
export const body = (where: Where, change: (body: Body, asked: Asked) => unknown): Mutant =>
  answer(where, async (response, asked) => {
    if (!response.ok || response.status === 204) return response;
    return again(response, change((await response.json()) as Body, asked));
  });
/** Changes the JSON of errors. */
export const error = (change: (error: Body) => unknown): Mutant =>
  answer('any', async (response) => {
    if (response.ok) return response;
    return again(response, change(((await response.json()) as { error: Body }).error));
  });
export const again = ({ status, headers }: Response, content: unknown, more: ResponseInit = {}): Response => {
  const kept = new Headers(headers);
  kept.delete('content-length');
  return new Response(JSON.stringify(content), { status, headers: kept, ...more });
};
/** Another status for one. */
export const status = (where: Where, from: number, to: number): Mutant =>
  answer(where, async (response) => {
    if (response.status !== from) return response;
    const text = await response.text();
    return new Response(to === 204 ? null : text || null, { status: to, headers: response.headers });
  });
/** Without these parameters of the query or fields of the body. */
export const ignoring = (where: Where, ...names: readonly string[]): Mutant =>
  asking(where, ({ url, body }) => {
    for (const name of names) {
      url.searchParams.delete(name);
      delete body[name];
    }
  });
/** Changes query and body on their way. */
export const asking =
  (where: Where, change: (asked: Asked) => void): Mutant =>
  (send) =>
  async (path, init, as) => {
    const asked = askedBy(path, init);
    if (!isAt(where, asked)) return send(path, init, as);
    change(asked);
    const { pathname, search } = asked.url;
    const isJson = typeof init.body === 'string' && init.body.startsWith('{');
    return send(pathname + search, isJson ? { ...init, body: JSON.stringify(asked.body) } : init, as);
  };
export const memories = (where: Where, change: (memory: Body) => unknown): Mutant =>
  body(where, (given) => {
    if (Array.isArray(given.items)) return { ...given, items: given.items.map(change) };
    if (Array.isArray(given.results)) {
      return { ...given, results: given.results.map((hit: Body) => ({ ...hit, memory: change(hit.memory as Body) })) };
    }
    return change(given);
  });
export const without =
  (...names: readonly string[]) =>
  (memory: Body) =>
    Object.fromEntries(Object.entries(memory).filter(([name]) => !names.includes(name)));
export const features = (change: Body): Mutant =>
  body('capabilities', (given) => ({ ...given, features: { ...(given.features as Body), ...change } }));
export const hits = (change: (hits: { memory: Body; score: number }[], asked: Asked) => unknown): Mutant =>
  body('search', (given, asked) => ({ ...given, results: change(given.results as never, asked) }));
/** Deletes nothing: deleted memories stay visible `where`, and there alone. */
export const undead =
  (where: Where): Mutant =>
  (send) => {
    const dead = new Set<string>();
    return async (path, init, as) => {
      const asked = askedBy(path, init);
      const at = asked.url.pathname;
      if (isAt('delete', asked) && (await send(at, {}, as)).ok && !dead.has(at)) {
        dead.add(at);
        return new Response(null, { status: 204 });
      }
      if (dead.has(at) && !isAt(where, asked)) {
        return send('/memories/none', init, as);
      }
      const response = await send(path, init, as);
      if (isAt(where, asked) || !response.ok || !['/memories', '/memories/search'].includes(at)) return response;
      const given = (await response.json()) as { items?: { id: string }[]; results?: { memory: { id: string } }[] };
      const lives = ({ id }: { id: string }) => !dead.has(`/memories/${id}`);
      if (given.items) return again(response, { ...given, items: given.items.filter(lives) });
      return again(response, { results: given.results?.filter(({ memory }) => lives(memory)) });
    };
  };
