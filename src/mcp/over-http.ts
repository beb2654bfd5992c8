import { ERROR_CODES, type ErrorCode, OmpError } from '#contract';
import type { Verb } from '../verbs/verb.ts';
import { forUser, type UserMemories } from './memories.ts';

export interface RemoteOptions {
  /** Address of a gateway, or of another service that implements the protocol. */
  readonly url: string;
  readonly key: string | undefined;
  readonly user_id: string;
  /** Deadline of one request, in milliseconds. */
  readonly timeout_ms: number;
}

type Fields = Readonly<Record<string, unknown>>;

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body?: Fields | undefined;
  readonly signal: AbortSignal;
}

/** The memories of a user behind an HTTP address. */
export function overHttp({ url, key, user_id, timeout_ms }: RemoteOptions): UserMemories {
  const base = baseOf(url);
  const headers = {
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    // Header values are Latin-1; the gateway reads them as UTF-8.
    'x-user-id': Buffer.from(user_id).toString('latin1'),
  };
  const ask = async <Answer>({ method, path, body, signal }: Asked): Promise<Answer> => {
    const request = {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
      // A redirect would carry the key to another address.
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeout_ms)]),
    } as const;
    let status: number;
    let text: string;
    try {
      const response = await fetch(base + path, request);
      status = response.status;
      text = await response.text();
    } catch (cause) {
      throw new OmpError('provider_error', `${base} does not answer; is the gateway running?`, { cause });
    }
    const answer = text === '' ? undefined : parsed(text);
    if (status < 300) return answer as Answer;
    throw errorOf(answer) ?? new OmpError('provider_error', `${base} answered ${status}; is it a gateway?`);
  };
  return {
    run: async (verb, input, signal) => ask(requestOf(verb, forUser(verb, input, user_id) as Fields, signal)),
  };
}

/** The request of a verb (`src/http/verb-routes.ts` reads it). The user is in the headers of every request. */
function requestOf(
  { method, path, body }: Pick<Verb, 'method' | 'path' | 'body'>,
  { id, user_id, ...fields }: Fields,
  signal: AbortSignal,
): Asked {
  if (path.includes('{id}')) {
    // These would address another resource.
    if (/^\.{0,2}$/.test(String(id))) throw new OmpError('not_found', 'no memory has this id');
    const ofMemory = path.replace('{id}', encodeURIComponent(String(id)));
    return { method, path: ofMemory, body: body && (fields[body.field as string] as Fields), signal };
  }
  if (body)
    return {
      method,
      path,
      body: body.field === undefined ? { ...fields, user_id } : (fields[body.field] as Fields),
      signal,
    };
  return { method, path: path + queryOf({ ...fields, user_id }), signal };
}

/** `?name=value` of every field that is given. */
function queryOf(fields: Fields): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

/** Names of the verbs that a gateway supports. Rejects if it does not say. */
export async function remoteVerbs({ url, timeout_ms }: RemoteOptions): Promise<readonly string[]> {
  const response = await fetch(`${baseOf(url)}/capabilities`, { signal: AbortSignal.timeout(timeout_ms) });
  const { verbs } = (await response.json()) as { verbs?: unknown };
  if (!Array.isArray(verbs)) throw new Error('the answer of /capabilities has no verbs');
  return verbs;
}

const baseOf = (url: string): string => (url.endsWith('/') ? url.slice(0, -1) : url);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error of an envelope; undefined if this is none. */
function errorOf(answer: unknown): OmpError | undefined {
  const { code, message } = (answer as { error?: { code?: unknown; message?: unknown } } | null)?.error ?? {};
  if (typeof message !== 'string' || !ERROR_CODES.includes(code as ErrorCode)) return undefined;
  return new OmpError(code as ErrorCode, message);
}
