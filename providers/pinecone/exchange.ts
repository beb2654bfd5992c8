import { AsyncLocalStorage } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import { readAtMost } from '#contract';
import { Failure } from './failure.ts';
import { refusal } from './refusal.ts';

/** Of an answer: more than a hundred records with the longest vectors and the most metadata. */
const MOST_BYTES = 64 * 1024 * 1024;

export interface Answer {
  readonly body: object;
  readonly headers: Headers;
}

/** What goes out with a request besides what the SDK says. */
interface Accompanying {
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

interface Exchange extends Accompanying {
  answer?: Answer;
  failure?: unknown;
}

const exchanges = new AsyncLocalStorage<Exchange>();

/**
 * What the SDK gets as its `fetch`. The SDK knows neither deadlines nor signals, drops statuses, headers and parts of
 * the answers, and copies large ones slowly (10,000 records: 21 s, instead of 0.2 s). So it makes the requests, and the
 * answers are taken here.
 */
export const fetchApi: typeof fetch = async (url, init) => {
  const exchange = exchanges.getStore();
  if (!exchange) throw new Error('a request outside of an exchange');
  const { signal } = exchange;
  const headers = { ...init?.headers, ...exchange.headers };
  try {
    // A redirect would take the API key to another host.
    const response = await fetch(url, { ...init, headers, signal, redirect: 'manual' });
    const text = response.body ? (await readAtMost(response.body, MOST_BYTES)).toString() : '';
    if (!response.ok) throw refusal(response, text);
    exchange.answer = { body: parsed(text), headers: response.headers };
  } catch (error) {
    exchange.failure = toFailure(error);
    throw exchange.failure;
  }
  return new Response('{}');
};

/** One request of the SDK, and its answer. Rejects with a `Failure`, or as the SDK refuses it. */
export async function answerTo(send: () => Promise<unknown>, accompanying: Accompanying): Promise<Answer> {
  const exchange: Exchange = { ...accompanying };
  try {
    await exchanges.run(exchange, send);
  } catch (error) {
    throw exchange.failure ?? error;
  }
  if (!exchange.answer) throw new Error('the SDK made no request');
  return exchange.answer;
}

/** Runs the work with a signal that fires with the given one, or with a `Failure` after so many milliseconds. */
export async function withDeadline<Result>(
  milliseconds: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  outer.throwIfAborted();
  const inner = new AbortController();
  const stop = () => inner.abort(outer.reason);
  const late = () => inner.abort(new Failure('late', `no answer within ${milliseconds} ms`));
  const deadline = setTimeout(late, milliseconds);
  // Any number of requests may share it; Node would warn of the eleventh.
  setMaxListeners(0, outer);
  outer.addEventListener('abort', stop, { once: true });
  try {
    return await work(inner.signal);
  } finally {
    clearTimeout(deadline);
    outer.removeEventListener('abort', stop);
  }
}

function parsed(text: string): object {
  const body: unknown = JSON.parse(text);
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body;
  throw new SyntaxError();
}

/** Where the error of the connection itself is wrapped: after several addresses were tried, and when it takes too long. */
const NOT_CONNECTED = ['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'];
const NOT_SECURE = /^(?:CERT_|ERR_TLS_|ERR_SSL_|SELF_SIGNED_|UNABLE_TO_|DEPTH_ZERO_|HOSTNAME_MISMATCH$|EPROTO$)/;

/** Messages of the system name the host: only codes are taken over. */
function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof SyntaxError) return new Failure('unreadable', 'the answer is not a JSON object');
  const { code, syscall } = systemError(error);
  if (NOT_CONNECTED.includes(code) || syscall === 'connect' || syscall === 'getaddrinfo') {
    return new Failure('unreachable', code);
  }
  if (NOT_SECURE.test(code)) return new Failure('insecure', code);
  return new Failure('lost', code);
}

/** The error that has a code, among an error and its causes. */
function systemError(error: unknown): { code: string; syscall: string | undefined } {
  let inner = error;
  while (inner instanceof Error && inner.cause !== undefined && !('code' in inner)) inner = inner.cause;
  const { code = 'unknown', syscall } = inner as { code?: unknown; syscall?: string };
  return { code: String(code), syscall };
}
