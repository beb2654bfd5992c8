import { AsyncLocalStorage } from 'node:async_hooks';
import { Pinecone } from '@pinecone-database/pinecone';
import { readAtMost } from '#provider';
import { Failure, failureOf } from './pinecone-errors.ts';

/** Maximum bytes of an answer: more than a hundred records with the longest vectors and metadata. */
const MAX_BYTES = 64 * 1024 * 1024;

export interface Answer {
  readonly body: object;
  readonly headers: Headers;
}

interface RequestContext {
  readonly signal: AbortSignal;
  /** Added to those of the SDK. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

interface Exchange extends RequestContext {
  answer?: Answer;
  failure?: unknown;
}

const exchanges = new AsyncLocalStorage<Exchange>();

/**
 * Opens an index with the official SDK, for requests inside `exchange`. It sends nothing.
 * Throws a plain `Error` for an impossible address.
 */
export function openIndex(api_key: string, index_host: string) {
  rejectDebugOutput();
  const pinecone = new Pinecone({ apiKey: api_key, fetchApi, maxRetries: 0 });
  return pinecone.index({ host: indexUrl(index_host) });
}

/**
 * The SDK's `fetch`. The SDK has no deadlines and signals, drops statuses, headers and parts of the answers, and copies
 * large answers slowly (10,000 records: 21 s instead of 0.2 s). So the SDK makes the requests, and the answers are read
 * here.
 */
const fetchApi: typeof fetch = async (url, init) => {
  const current = exchanges.getStore();
  if (!current) throw new Error('a request outside of an exchange');
  const { signal } = current;
  const headers = { ...init?.headers, ...current.headers };
  try {
    // A redirect would send the API key to another host.
    const response = await fetch(url, { ...init, headers, signal, redirect: 'manual' });
    const text = response.body ? (await readAtMost(response.body, MAX_BYTES)).toString() : '';
    if (!response.ok) throw failureOf(response, text);
    current.answer = { body: parseObject(text), headers: response.headers };
  } catch (error) {
    current.failure = toFailure(error);
    throw current.failure;
  }
  return new Response('{}');
};

/** Sends one request with the SDK and returns its answer. Rejects with a `Failure`, or with the SDK's own error. */
export async function exchange(send: () => Promise<unknown>, context: RequestContext): Promise<Answer> {
  const current: Exchange = { ...context };
  try {
    await exchanges.run(current, send);
  } catch (error) {
    throw current.failure ?? error;
  }
  if (!current.answer) throw new Error('the SDK made no request');
  return current.answer;
}

function parseObject(text: string): object {
  const body: unknown = JSON.parse(text);
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body;
  throw new SyntaxError();
}

const NOT_CONNECTED = ['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'];
const NOT_SECURE = /^(?:CERT_|ERR_TLS_|ERR_SSL_|SELF_SIGNED_|UNABLE_TO_|DEPTH_ZERO_|HOSTNAME_MISMATCH$|EPROTO$)/;

/** System messages name the host, so only the codes are kept. */
function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof SyntaxError) return new Failure('malformed', 'the answer is not a JSON object');
  const { code, syscall } = systemError(error);
  if (NOT_CONNECTED.includes(code) || syscall === 'connect' || syscall === 'getaddrinfo') {
    return new Failure('unreachable', code);
  }
  if (NOT_SECURE.test(code)) return new Failure('insecure', code);
  return new Failure('connection-lost', code);
}

/** The first of an error and its causes that has a code: `fetch` wraps the error of the connection. */
function systemError(error: unknown): { code: string; syscall: string | undefined } {
  let inner = error;
  while (inner instanceof Error && inner.cause !== undefined && !('code' in inner)) inner = inner.cause;
  const { code = 'unknown', syscall } = inner as { code?: unknown; syscall?: string };
  return { code: String(code), syscall };
}

/** The URL of an index: https unless the setting names a scheme. Throws an `Error` for operators. */
export function indexUrl(index_host: string): string {
  const address = /^https?:\/\//i.test(index_host) ? index_host : `https://${index_host}`;
  if (!URL.canParse(address)) {
    throw new Error('pinecone: index_host is not the address of an index; the console of Pinecone shows it as "Host"');
  }
  return new URL(address).origin;
}

/** With one of these the SDK prints contents or the API key; it has no option against that. */
const DEBUG_VARIABLES = ['PINECONE_DEBUG', 'PINECONE_DEBUG_CURL'];

function rejectDebugOutput(): void {
  // biome-ignore lint/style/noProcessEnv: the SDK reads these variables; they are no settings of the gateway.
  const names = DEBUG_VARIABLES.filter((name) => process.env[name]);
  if (names.length > 0)
    throw new Error(`pinecone: unset ${names.join(' and ')}: the SDK would print memories and API keys`);
}
