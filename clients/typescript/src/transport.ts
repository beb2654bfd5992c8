import { type ApiError, ConnectionError, errorOf, InvalidResponseError, MemoryError, TimeoutError } from './errors.ts';

export interface ClientOptions {
  /** Address of the gateway, such as `http://localhost:8080`; a path prefix is kept. */
  readonly url: string | URL;
  /** API key or token. A function is asked before each attempt. */
  readonly key?: string | (() => string | Promise<string>);
  /** Milliseconds for one attempt, until the whole answer has arrived; default 30,000. */
  readonly timeout?: number;
  /** Milliseconds for all attempts and the pauses between them; default 60,000. */
  readonly totalTimeout?: number;
  /** Retries after the first attempt; default 2. */
  readonly retries?: number;
  /** Headers of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Called once for each field that the gateway ignores, and for each store that an answer lacks; default `console.warn`. */
  readonly onWarning?: (message: string) => void;
}

/** Options of one call; they override those of the client. */
export interface CallOptions extends Partial<Pick<ClientOptions, 'timeout' | 'totalTimeout' | 'retries' | 'headers'>> {
  /** Ends the call, also between two attempts. The call then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface Answer<Data> {
  readonly data: Data;
  readonly response: Response;
  /** Names the request in the gateway's logs. */
  readonly requestId: string | undefined;
}

/** A promise of the data; `withResponse` also gives status and headers. */
export interface ApiPromise<Data> extends Promise<Data> {
  withResponse(): Promise<Answer<Data>>;
}

export interface Request {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The segments of the path, not encoded. */
  readonly path: readonly string[];
  readonly query?: object | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the request may be sent again although it may have had an effect. */
  readonly repeatable: boolean;
  /** Whether the answer is an object a line. The data are then the objects, as they arrive. */
  readonly lines?: true;
}

/** A request that is yet to be made is made within the time of the call. */
export type Send = <Data>(request: Request | (() => Promise<Request>), options?: CallOptions) => Promise<Answer<Data>>;

/** Milliseconds for one attempt, or between two parts of an answer that comes in lines. */
const TIMEOUT = 30_000;
/** Pauses between attempts, in milliseconds: the first, and the longest. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 8_000;
/** Longest delay of a timer in JavaScript. */
const LONGEST_TIMER = 2 ** 31 - 1;
const CONSISTENCY = 'x-consistency-token';
/** What headers of a success warn about: names of fields or of stores. */
const WARNINGS = {
  'x-ignored-fields': (name: string) =>
    `the gateway ignores "${name}"; data of your own goes into keys of a memory that begin with x-`,
  'x-partial': (name: string) => `answers lack the store "${name}", which does not answer`,
  'x-without': (name: string) => `answers lack the store "${name}", which does not support what was asked for`,
} as const;
/** Names that a client remembers to have warned about. */
const MAX_WARNINGS = 100;

/**
 * Sends requests with timeouts and retries. The latest consistency token is sent with the next request, so that a client
 * reads its own writes through any replica.
 */
export function createSend(client: ClientOptions): Send {
  const base = `${client.url}`.replace(/\/+$/, '');
  if (/^[^/]*\/\/[^/]*@/.test(base)) throw new TypeError('url: must not contain credentials; use key');
  let consistency: string | undefined;
  const warnings = new Set<string>();
  const warn = (response: Response) => {
    for (const [header, textOf] of Object.entries(WARNINGS)) {
      for (const name of response.headers.get(header)?.split(', ') ?? []) {
        const text = textOf(name);
        if (warnings.has(text) || warnings.size === MAX_WARNINGS || !/^[\w.-]{1,64}$/.test(name)) continue;
        warnings.add(text);
        // biome-ignore lint/suspicious/noConsole: who set nothing else must see it
        (client.onWarning ?? console.warn)(`omp-gateway-client: ${text}`);
      }
    }
  };

  const attempt = async (request: Request, options: CallOptions, signal: AbortSignal): Promise<Answer<never>> => {
    const { method, path, query, body } = request;
    const key = typeof client.key === 'function' ? await client.key() : client.key;
    const url = base + toPath(path) + toQuery(query);
    const headers = toHeaders(
      client.headers,
      {
        // The error of `fetch` would show the key.
        ...(key !== undefined && { authorization: `Bearer ${checkedKey(key)}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(consistency !== undefined && { [CONSISTENCY]: consistency }),
      },
      request.headers,
      options.headers,
    );
    const payload = body === undefined ? {} : { body: JSON.stringify(body) };
    let response: Response;
    let text = '';
    try {
      // A redirect could send the memories to another host, and makes a POST a GET.
      const redirect = 'manual';
      response = await (client.fetch ?? fetch)(url, { method, headers, signal, redirect, ...payload });
      if (request.lines && response.ok && response.body) {
        const data = linesIn(response.body, options.timeout ?? client.timeout ?? TIMEOUT, options.signal);
        return { data: data as never, response, requestId: response.headers.get('x-request-id') ?? undefined };
      }
      text = await response.text();
    } catch (error) {
      if (error instanceof MemoryError) throw error;
      throw new ConnectionError(`the request to ${base} failed`, { cause: error });
    }
    consistency = response.headers.get(CONSISTENCY) ?? consistency;
    const answer = read(response, text);
    warn(response);
    return answer;
  };

  /** One attempt with its timeout. Rejects with the reason of `whole` if that ended it. */
  const attemptInTime = async (request: Request, options: CallOptions, whole: AbortSignal): Promise<Answer<never>> => {
    const { timeout = client.timeout ?? TIMEOUT } = options;
    const timer = expiring(timeout, `no complete answer within ${timeout} ms (timeout)`);
    const signal = AbortSignal.any([whole, timer.signal]);
    try {
      return await unlessAborted(attempt(request, options, signal), signal);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      timer.clear();
    }
  };

  return async (input, options = {}) => {
    const { retries = client.retries ?? 2, totalTimeout = client.totalTimeout ?? 60_000 } = options;
    const end = Date.now() + totalTimeout;
    const total = expiring(totalTimeout, `no answer within ${totalTimeout} ms (totalTimeout)`);
    const whole = options.signal ? AbortSignal.any([options.signal, total.signal]) : total.signal;
    try {
      whole.throwIfAborted();
      const request = typeof input === 'function' ? await unlessAborted(input(), whole) : input;
      for (let failures = 0; ; failures++) {
        try {
          return await attemptInTime(request, options, whole);
        } catch (error) {
          whole.throwIfAborted();
          const pause = pauseAfter(error, failures);
          // A pause that outlasts the call would only delay the error.
          if (failures >= retries || !mayRetry(error, request) || Date.now() + pause >= end) throw error;
          await sleep(pause, whole);
        }
      }
    } finally {
      total.clear();
    }
  };
}

/** What was rejected as too frequent had no effect. Anything else may have had one. */
function mayRetry(error: unknown, { repeatable }: Request): boolean {
  // What no request caused, such as the error of a function for the key.
  if (!(error instanceof MemoryError)) return false;
  const { status } = error as Partial<ApiError>;
  if (status === 429) return true;
  return repeatable && (status === undefined || status >= 500 || status === 408);
}

/** Milliseconds: as long as the gateway asks for, else twice as long after each failure, with full jitter. */
function pauseAfter(error: unknown, failures: number): number {
  const { retryAfter } = error as Partial<ApiError>;
  const jitter = Math.random() * Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** failures);
  return retryAfter === undefined ? jitter : retryAfter * 1_000 + jitter;
}

function read(response: Response, text: string): Answer<never> {
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const { status } = response;
  const retryAfter = secondsOf(response.headers.get('retry-after'));
  const invalid = (what: string) =>
    new InvalidResponseError(`the answer (status ${status}) is not ${what}`, { status, requestId, retryAfter });
  let data: unknown;
  try {
    data = text === '' ? undefined : JSON.parse(text);
  } catch {
    throw invalid('JSON');
  }
  if (response.ok && (status === 204 || (typeof data === 'object' && data !== null))) {
    return { data: data as never, response, requestId };
  }
  throw errorOf(data, { status, requestId, retryAfter }) ?? invalid("the protocol's");
}

/** The objects of an answer that has one a line. */
async function* linesIn(
  body: ReadableStream<Uint8Array>,
  timeout: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<unknown, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const timer = expiring(timeout, `no further part of the answer within ${timeout} ms (timeout)`);
      const both = signal ? AbortSignal.any([signal, timer.signal]) : timer.signal;
      const { done, value } = await unlessAborted(reader.read(), both).finally(timer.clear);
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield JSON.parse(line);
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof MemoryError ? error : new ConnectionError('the answer was cut off', { cause: error });
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** `Retry-After` as seconds: a number or a date. */
function secondsOf(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** `fetch` would resolve segments of dots, and so address something else. */
function toPath(segments: readonly string[]): string {
  if (segments.some((segment) => /^\.{0,2}$/.test(segment))) {
    throw new TypeError('an id in a path must not be empty, "." or ".."');
  }
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join('');
}

/** Later ones replace earlier ones of the same name. `fetch` would cut spaces off, and so name another user. */
function toHeaders(...groups: (Readonly<Record<string, string>> | undefined)[]): Headers {
  const headers = new Headers();
  for (const [name, value] of groups.flatMap((group) => Object.entries(group ?? {}))) {
    if (value !== value.trim()) throw new TypeError(`${name}: a header must not begin or end with a space`);
    headers.set(name, value);
  }
  return headers;
}

function checkedKey(key: string): string {
  if (!/^[!-~]+$/.test(key.trim())) throw new TypeError('key: must be visible ASCII characters');
  return key.trim();
}

/** An array repeats its parameter. */
function toQuery(query: object = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one != null) parameters.append(name, `${one}`);
  }
  return parameters.size > 0 ? `?${parameters}` : '';
}

function expiring(ms: number, message: string) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new TimeoutError(message)), Math.min(ms, LONGEST_TIMER));
  return { signal: controller.signal, clear: () => clearTimeout(timer) };
}

/** The result, or the reason of the signal, which a `fetch` or a function for the key may ignore. */
export const unlessAborted = <Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> =>
  new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    void work.then(resolve, reject).then(() => signal.removeEventListener('abort', abort));
  });

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout>;
  const pause = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return unlessAborted(pause, signal).finally(() => clearTimeout(timer));
}

/** The data of an answer, with the answer at hand. */
export function toPromise<Data>(answer: Promise<Answer<Data>>): ApiPromise<Data> {
  const data = answer.then((response) => response.data);
  // A caller that only uses `withResponse` gets the error there.
  data.catch(() => {});
  return Object.assign(data, { withResponse: () => answer });
}
