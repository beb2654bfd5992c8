import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Capabilities, type Code, ERRORS, type Hit, type Memory, type Page, VERBS } from './protocol.ts';

/** Sends one request to the implementation, with the key of the run unless `anonymous`. `path` begins with a slash. */
export type Send = (path: string, init: RequestInit, as: Caller) => Promise<Response>;
/** `narrow`: with a key that may not touch the scopes below `DENIED_SCOPE`. */
export type Caller = 'key' | 'wrong key' | 'narrow' | 'anonymous';
export const DENIED_SCOPE = 'omp-conformance/denied';

/** A request and its answer, as the report shows them: without credentials. */
export interface Exchange {
  readonly request: { readonly method: string; readonly path: string; readonly body?: string | undefined };
  /** Missing while there is no answer. */
  answer?: { readonly status: number; readonly type: string; readonly text: string };
}

export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  /** The parsed body; undefined if it is not JSON. */
  readonly body: unknown;
}

/** What a case found wrong. */
export class Failure extends Error {}
/** Why a case does not apply. */
export class Skip extends Error {}

export type Fields = Readonly<Record<string, unknown>>;
type Query = Readonly<Record<string, string | number | undefined>>;

const FEATURES = ['scopes', 'temporal', 'supersession'] as const;
/** Optional fields with a value that every provider which stores them can store. */
const PROBES = {
  tags: ['probe'],
  source: { app: 'omp-conformance', type: 'explicit' },
  confidence: 0.5,
  valid_from: '2024-03-01T01:00:00Z',
  valid_to: '2034-03-01T01:00:00Z',
} as const;
type Probed = keyof typeof PROBES;
/** What a case needs: declared verbs and features, and optional fields that are stored. */
export type Need = (typeof VERBS)[number] | (typeof FEATURES)[number] | Probed | 'key' | 'narrow key' | 'created_at';

/** One check. `should`: what it finds is a warning. */
export interface Case {
  readonly id: string;
  /** Keys of `CLAUSES`. */
  readonly clauses: readonly string[];
  readonly title: string;
  readonly needs?: readonly Need[];
  /** Writes nothing, also to an implementation that accepts what it must reject. */
  readonly readOnly?: true;
  readonly should?: true;
  run(kit: Kit): Promise<unknown>;
}

/** One run against one implementation. */
export interface KitRun {
  readonly send: Send;
  readonly capabilities: Capabilities;
  /** Whether the run has a key, and one that is `narrow`. */
  readonly keys: { readonly key: boolean; readonly narrow: boolean };
  /** Every user of the run begins with it. */
  readonly user: string;
  /** Whose memories to delete, with what is in `added`. */
  readonly users: Set<string>;
  /** Memories to delete. */
  readonly added: Set<string>;
  readonly stored: Map<Probed, Promise<string | undefined>>;
}

export const openRun = (options: Pick<KitRun, 'send' | 'capabilities' | 'keys'>): KitRun => ({
  ...options,
  user: `omp-conformance-${randomUUID()}`,
  users: new Set(),
  added: new Set(),
  stored: new Map(),
});

/** Throws `Failure` unless it holds. */
export function check(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Failure(otherwise);
}

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
};

export const same = (actual: unknown, expected: unknown, what: string): void =>
  check(isDeepStrictEqual(actual, expected), `${what} must be ${shown(expected)}, is ${shown(actual)}`);

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?$/;
/** Epoch milliseconds. Throws `Failure` unless it is ISO 8601. */
export function instant(value: unknown, what: string): number {
  check(typeof value === 'string' && TIME.test(value), `${what} must be an ISO 8601 datetime, is ${shown(value)}`);
  return Date.parse(value);
}

const TIMES = ['created_at', 'updated_at', 'valid_from', 'valid_to'];
const FIELDS = ['id', 'content', 'user_id', 'scope', 'tags', 'source', 'confidence', 'supersedes', ...TIMES];
/** The fields of the specification, where null and empty count as absent, and times are moments. */
export const record = (memory: Fields): Record<string, unknown> =>
  Object.fromEntries(
    FIELDS.flatMap((field) => {
      const value = isRecord(memory[field])
        ? Object.fromEntries(Object.entries(memory[field]).filter(([, part]) => part !== null))
        : memory[field];
      if (value === undefined || value === null || isDeepStrictEqual(value, []) || isDeepStrictEqual(value, {}))
        return [];
      return [[field, TIMES.includes(field) ? instant(value, field) : value]];
    }),
  );

export const idsOf = (memories: readonly Memory[]): string[] => memories.map(({ id }) => id);
export const UNKNOWN_ID = 'mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const path = (id: string): string => `/memories/${encodeURIComponent(id)}`;

const JSON_TYPE = { 'content-type': 'application/json' };
/** How long a memory may stay queued. */
const INGESTION_MS = 60_000;
/** Between two looks at a queued memory, doubled each time. */
const [FIRST_WAIT_MS, LAST_WAIT_MS] = [4, 256];
const MAX_PAGES = 200;
const MAX_WAITS = 5;
const LONGEST_WAIT_MS = 60_000;

export type Kit = ReturnType<typeof openKit>;

/** Requests and what every answer must be. Each goes to `exchanges`. */
function openWire({ send, added }: KitRun, exchanges: Exchange[]) {
  async function raw(path: string, init: RequestInit = {}, as: Caller = 'key'): Promise<Answer> {
    const { method = 'GET', body } = init;
    const exchange: Exchange = { request: { method, path, ...(typeof body === 'string' && { body }) } };
    exchanges.push(exchange);
    let response = await send(path, init, as);
    for (let wait = 0; response.status === 429 && wait < MAX_WAITS; wait++) {
      const seconds = Number(response.headers.get('retry-after') ?? 2 ** wait);
      await setTimeout(Math.min(LONGEST_WAIT_MS, 1000 * (seconds >= 0 ? seconds : 1)));
      response = await send(path, init, as);
    }
    const { status, headers } = response;
    const [type, text] = [headers.get('content-type') ?? '', await response.text()];
    exchange.answer = { status, type, text };
    const answer = { status, type, text, body: parsed(text) };
    if (method === 'POST' && status < 300 && isRecord(answer.body) && typeof answer.body.id === 'string') {
      added.add(answer.body.id);
    }
    return answer;
  }

  const ask = (path: string, query: Query = {}, as?: Caller) => {
    const parameters = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, `${value}`] as [string, string]],
    );
    return raw(parameters.length === 0 ? path : `${path}?${new URLSearchParams(parameters)}`, {}, as);
  };
  const tell = (method: string, path: string, body?: unknown, as?: Caller) =>
    raw(path, body === undefined ? { method } : { method, headers: JSON_TYPE, body: JSON.stringify(body) }, as);

  /** The body, if the answer has this status and is a JSON object. */
  async function json<T>(pending: Promise<Answer>, status: number): Promise<T> {
    const answer = await pending;
    same(answer.status, status, 'the status');
    const isJson = /^application\/json\s*(?:;|$)/i.test(answer.type);
    check(isJson, `the content type must be application/json, is '${answer.type}'`);
    check(isRecord(answer.body), 'the answer must be a JSON object');
    return answer.body as T;
  }

  /** Checks the envelope, with the status and type of the code, and returns the error. More than one code may fit. */
  async function refused(pending: Promise<Answer>, ...codes: readonly [Code, ...Code[]]): Promise<Fields> {
    const answer = await pending;
    const received = isRecord(answer.body) && isRecord(answer.body.error) ? answer.body.error.code : undefined;
    const code = codes.find((one) => one === received) ?? codes[0];
    const { status, type } = ERRORS[code];
    const body = await json<{ error: Fields }>(Promise.resolve(answer), status);
    same(Object.keys(body), ['error'], 'the keys of the error answer');
    check(isRecord(body.error), 'error must be an object');
    same(body.error.code, code, 'error.code');
    same(body.error.type, type, 'error.type');
    check(typeof body.error.message === 'string' && body.error.message !== '', 'error.message must be a text');
    return body.error;
  }
  return { raw, ask, tell, json, refused };
}
type Wire = ReturnType<typeof openWire>;

/** Says why a need is not met; undefined: it is. */
function openNeeds({ capabilities: { features, verbs }, keys, user, stored }: KitRun, { tell }: Wire) {
  async function probe(field: Probed): Promise<string | undefined> {
    const memory = { content: 'probe', user_id: user, [field]: PROBES[field] };
    const { status, body } = await tell('POST', '/memories', memory);
    if (isRecord(body) && isRecord(body.error) && body.error.code === 'unsupported_capability') {
      return `${field} is answered with unsupported_capability`;
    }
    const isLost = status === 201 && isRecord(body) && record({ [field]: body[field] })[field] === undefined;
    return isLost ? `${field} is not stored` : undefined;
  }
  const facts: Readonly<Partial<Record<Need, readonly [unknown, string]>>> = {
    scopes: [features.scopes !== 'none', 'features.scopes is none'],
    temporal: [features.temporal, 'features.temporal is false'],
    supersession: [features.supports_supersession, 'features.supports_supersession is false'],
    key: [keys.key, 'the run has no key'],
    'narrow key': [keys.narrow, 'the run has no narrow key'],
  };
  return async (need: Need): Promise<string | undefined> => {
    const [holds, otherwise] = facts[need] ?? [true, ''];
    if (!holds) return otherwise;
    if (VERBS.some((verb) => verb === need) && !verbs.includes(need)) return `the verb ${need} is not declared`;
    if (!(need in PROBES)) return undefined;
    const reason = stored.get(need as Probed) ?? probe(need as Probed);
    stored.set(need as Probed, reason);
    return reason;
  };
}

/** What a case may use. Every request and answer goes to `exchanges`. */
export function openKit(run: KitRun, exchanges: Exchange[]) {
  const wire = openWire(run, exchanges);
  const { ask, tell, json } = wire;
  const isMissing = openNeeds(run, wire);

  const get = (id: string) => json<Memory>(ask(path(id)), 200);

  /** Waits until a memory whose provider tracks ingestion can be found. */
  async function settled(memory: Memory): Promise<Memory> {
    const end = Date.now() + INGESTION_MS;
    let now = memory;
    let wait = FIRST_WAIT_MS;
    while (now.status === 'queued' || now.status === 'indexing') {
      check(Date.now() < end, `the memory must not stay ${now.status} for more than ${INGESTION_MS / 1000} seconds`);
      await setTimeout(wait);
      wait = Math.min(2 * wait, LAST_WAIT_MS);
      now = await get(memory.id);
    }
    return now;
  }

  /** Adds a memory and waits until it is ingested. */
  async function add(fields: Fields): Promise<Memory> {
    const memory = await json<Memory>(tell('POST', '/memories', { content: 'a note', ...fields }), 201);
    check(typeof memory.id === 'string' && memory.id !== '', 'id must be a text');
    return settled(memory);
  }

  async function list(query: Query): Promise<Page> {
    const page = await json<Page>(ask('/memories', query), 200);
    check(Array.isArray(page.items), 'items must be a list');
    return page;
  }

  /** Follows `next_cursor` to the end; `between` runs after each page but the last. */
  async function pages(query: Query, between: () => Promise<unknown> = async () => {}): Promise<Memory[]> {
    const memories: Memory[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const { items, next_cursor } = await list({ ...query, cursor });
      memories.push(...items);
      if (next_cursor == null) return memories;
      check(typeof next_cursor === 'string' && next_cursor !== cursor, 'next_cursor must lead on');
      cursor = next_cursor;
      await between();
    }
    throw new Failure(`the list must end with a next_cursor of null; it does not after ${MAX_PAGES} pages`);
  }

  return {
    ...wire,
    ...{ capabilities: run.capabilities, path, get, settled, add, list, pages },
    /** A new user of this run. */
    user(): string {
      const user = `${run.user}-${run.users.size}`;
      run.users.add(user);
      return user;
    },
    /** Throws `Skip` if something is missing. */
    async needs(...all: readonly Need[]): Promise<void> {
      for (const need of all) {
        const reason = await isMissing(need);
        if (reason !== undefined) throw new Skip(reason);
      }
    },
    stores: async (need: Need): Promise<boolean> => (await isMissing(need)) === undefined,
    async addAll(user_id: string, count: number, fields: Fields = {}): Promise<Memory[]> {
      const all: Memory[] = [];
      for (let n = 0; n < count; n++) all.push(await add({ user_id, content: `note ${n}`, ...fields }));
      return all;
    },
    update: async (id: string, fields: Fields): Promise<Memory> =>
      settled(await json<Memory>(tell('PATCH', path(id), fields), 200)),
    async remove(id: string): Promise<Answer> {
      const answer = await tell('DELETE', path(id));
      same(answer.status, 204, 'the status');
      return answer;
    },
    async search(query: Query): Promise<Hit[]> {
      const { results } = await json<{ results: Hit[] }>(ask('/memories/search', query), 200);
      const isList = Array.isArray(results) && results.every((hit) => isRecord(hit?.memory));
      check(isList, 'results must be a list of {memory, score}');
      return results;
    },
    /** Until the clock that stamps memories has moved on, as far as its `created_at` shows. */
    tick: ({ created_at }: Memory) => setTimeout(/\.\d*[1-9]/.test(created_at) ? 5 : 1_100),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
