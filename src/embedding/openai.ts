import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI, { APIConnectionTimeoutError, APIError } from 'openai';
import { backgroundCall, beginningOf, type Call, type Embedder, type Log, OmpError } from '#contract';
import { readAtMost } from '#toolbox';
import { createMeter, type Meter } from './meter.ts';
import { FailedStatus, rejectedText } from './with-batching.ts';

export interface OpenAiOptions {
  readonly kind: 'openai';
  readonly model: string;
  /** Undefined: the default length of the model. */
  readonly dimensions: number | undefined;
  /** Undefined: OpenAI itself. */
  readonly base_url: string | undefined;
  /** May be empty: many self-hosted services need no key. */
  readonly api_key: string;
  /** For one attempt; a failed one is retried once. */
  readonly timeout_ms: number;
  /** Maximum texts in one request to the service. */
  readonly batch_size: number;
  readonly max_waiting?: number;
  readonly cache_size: number;
}

const OPENAI_URL = 'https://api.openai.com/v1';

/** For a keep-alive connection that the service has just closed, or a restart behind a load balancer. */
const MAX_RETRIES = 1;

type Accompanying = Pick<Call, 'signal' | 'trace' | 'caller'>;
/** What the service takes besides model and texts. */
interface Parameters {
  readonly encoding_format?: 'base64';
  readonly dimensions?: number;
}
type Request = (
  texts: readonly string[],
  call: Accompanying,
  parameters: Parameters,
  apps?: readonly (string | null)[],
) => Promise<Float32Array[]>;

/** A third of the bytes of numbers as text. */
const AS_BASE64: Parameters = { encoding_format: 'base64' };

/**
 * An embedder with OpenAI's embeddings API, for any compatible service. Raw vectors. A first request checks the service, waits while it
 * says that it is loading, and detects the length of its vectors; throws a plain `Error` that names the setting to check.
 * Errors of `embed`: `rate_limited`; `invalid_request` if the service rejects the text; else `provider_error`.
 */
export async function openOpenAi(options: OpenAiOptions, log: Log): Promise<Embedder> {
  const transport = openHttpFetch();
  try {
    const usage = createMeter(options.model);
    const request = requester(options, transport.fetch, usage);
    const { dimensions, parameters } = await probe(request, options, log);
    return {
      model: options.model,
      dimensions,
      usage,
      async embed(texts, _purpose, call, apps) {
        try {
          const vectors = await request(texts, call, parameters, apps);
          const length = vectors[0]?.length ?? dimensions;
          if (length !== dimensions) throw new BadAnswer(`embeddings of ${length} numbers instead of ${dimensions}`);
          return vectors;
        } catch (error) {
          // The signal's reason is more precise.
          call.throwIfAborted();
          throw toOmpError(error, options);
        }
      },
      close: async () => transport.close(),
    };
  } catch (error) {
    transport.close();
    throw error;
  }
}

function requester(options: OpenAiOptions, fetch: OpenAI['fetch'], usage: Meter): Request {
  const client = new OpenAI({
    // The client requires a key; a service without keys ignores it.
    apiKey: options.api_key || 'none',
    baseURL: options.base_url ?? OPENAI_URL,
    timeout: options.timeout_ms,
    maxRetries: MAX_RETRIES,
    // Its debug log would contain the texts.
    logLevel: 'off',
    fetch,
  });
  return async (texts, { signal, trace, caller }, parameters, apps = texts.map(() => caller.app)) => {
    const input = [...texts];
    // Called for each attempt of the client.
    const fetchOptions = { onSent: () => usage.sent(apps) } as object;
    // `client.embeddings` always asks for a format, and without an explicit one it decodes arrays of numbers as base64.
    const answer = await client.post<unknown>('/embeddings', {
      body: { model: options.model, input, ...parameters },
      signal,
      fetchOptions,
      ...(trace && { headers: trace.headers() }),
    });
    const vectors = readVectors(answer, texts.length);
    const { total_tokens, prompt_tokens } = (property(answer, 'usage') ??
      {}) as Partial<OpenAI.Embeddings.CreateEmbeddingResponse.Usage>;
    usage.answered(texts, apps, total_tokens ?? prompt_tokens);
    return vectors;
  };
}

/** `onSent`: called once the whole request is on its way. */
type Init = RequestInit & { readonly onSent?: () => void };

export interface HttpFetch {
  readonly fetch: (url: string | URL | Request, init?: Init) => Promise<Response>;
  /** Closes the keep-alive connections. */
  close(): void;
}

/** Maximum bytes of a response: more than a batch of the longest vectors as text. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/**
 * The part of `fetch` that the openai client needs, on Node's HTTP client with keep-alive connections. Responses have only
 * the headers that the openai client reads. A rate limit is marked as final, so that the caller gets the error at once. The reason in an
 * error is where that client looks for it.
 */
export function openHttpFetch(maxBytes = MAX_ANSWER_BYTES): HttpFetch {
  const plain = new http.Agent({ keepAlive: true });
  const secure = new https.Agent({ keepAlive: true });

  async function send(url: string | URL | Request, init: Init = {}): Promise<Response> {
    const target = new URL(String(url));
    const [client, agent] = target.protocol === 'https:' ? [https, secure] : [http, plain];
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = client.request(target, {
        agent,
        method: init.method ?? 'GET',
        headers: Object.fromEntries(new Headers(init.headers)),
        ...(init.signal && { signal: init.signal }),
      });
      if (init.onSent) request.once('finish', init.onSent);
      request.once('response', resolve);
      request.on('error', reject);
      request.end(init.body);
    });
    const body = await readAtMost(answer, maxBytes);
    const { statusCode: status = 0 } = answer;
    const text = status < 400 ? body : withReason(body.toString());
    return new Response(text.length > 0 ? text : null, { status, headers: headersOf(answer) });
  }

  return {
    fetch: send,
    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}

/** Milliseconds that the service asks to wait. A name of ours: the openai client would wait as long. */
const WAIT_MS = 'x-omp-wait-ms';

function headersOf({ statusCode, headers }: IncomingMessage): Headers {
  const passed = new Headers({ 'content-type': headers['content-type'] ?? '' });
  const wait = msToWait(headers);
  if (wait !== undefined) passed.set(WAIT_MS, String(wait));
  if (statusCode === 429) passed.set('x-should-retry', 'false');
  return passed;
}

/** `Retry-After` is a number of seconds or a date; Azure and OpenAI may say it in milliseconds too. */
function msToWait({ 'retry-after-ms': exact, 'retry-after': after }: IncomingMessage['headers']): number | undefined {
  const wait = Number(exact) || Number(after) * 1_000 || Date.parse(after ?? '') - Date.now();
  return wait > 0 && Number.isFinite(wait) ? wait : undefined;
}

/** FastAPI has the reason in `detail`, others in `message`. Without it, the openai client says that there is no body. */
function withReason(body: string): string {
  try {
    const parsed: unknown = JSON.parse(body);
    const message = property(parsed, 'detail') ?? property(parsed, 'message');
    if (message !== undefined && property(parsed, 'error') === undefined) return JSON.stringify({ error: { message } });
  } catch {
    // It is the reason itself.
  }
  return body;
}

/** Longest wait for a service that is loading, at the start, in all. */
const MAX_LOADING_MS = 300_000;

/**
 * Finds out which parameters the service takes: some reject `encoding_format`, and many `dimensions`, so that is sent only when the
 * model's own length differs from the configured one.
 */
async function probe(request: Request, { model, dimensions, api_key }: OpenAiOptions, log: Log) {
  const call = backgroundCall('embedder', new AbortController().signal);
  const latest = performance.now() + MAX_LOADING_MS;
  const lengthWith = async (parameters: Parameters): Promise<number | undefined> => {
    for (;;) {
      try {
        return (await request(['memory'], call, parameters))[0]?.length;
      } catch (error) {
        const ms = error instanceof APIError && error.status === 503 ? waitOf(error) : undefined;
        if (ms === undefined || performance.now() + ms > latest) throw error;
        log.info({ ms }, 'the embedding service is not ready; asking again when it said');
        await sleep(ms);
      }
    }
  };
  /** Undefined: the service rejects them. */
  const lengthIfTaken = (parameters: Parameters) =>
    lengthWith(parameters).catch((error: unknown) => {
      if (isRejectedText(error)) return undefined;
      throw error;
    });
  let natural: number | undefined;
  try {
    natural = await lengthIfTaken(AS_BASE64);
    const parameters = natural === undefined ? {} : AS_BASE64;
    natural ??= (await lengthWith(parameters)) as number;
    if (dimensions === undefined || dimensions === natural) return { dimensions: natural, parameters };
    const shortened = { ...parameters, dimensions };
    if ((await lengthIfTaken(shortened)) === dimensions) return { dimensions, parameters: shortened };
  } catch (error) {
    throw toStartError(error, api_key);
  }
  throw new Error(
    `OMP_EMBEDDING_DIMENSIONS is ${dimensions}, but the model ${model} gives vectors of ${natural} numbers and the ` +
      `service does not change that. Set OMP_EMBEDDING_DIMENSIONS to ${natural}, or leave it out.`,
  );
}

/** An answer that does not follow the embeddings API. The message quotes nothing of it. */
class BadAnswer extends Error {}

/**
 * The vectors of an embeddings answer in the order of the inputs. Each comes as base64 of little-endian 32-bit floats,
 * as requested, or as an array of numbers from services that ignore the parameter.
 * Throws `BadAnswer` unless they are `count` vectors of one length, one per input, with finite numbers that are not all 0.
 */
function readVectors(answer: unknown, count: number): Float32Array[] {
  const entries = property(answer, 'data');
  if (!Array.isArray(entries)) throw new BadAnswer('the answer holds no list of embeddings');
  if (entries.length !== count) throw new BadAnswer(`${entries.length} embeddings for ${count} texts`);
  const vectors: Float32Array[] = [];
  // Services that embed one text after the other number each of them 0.
  const isNumbered = entries.some((entry: unknown) => property(entry, 'index') !== 0);
  entries.forEach((entry: unknown, i) => {
    vectors[isNumbered ? position(entry, i, count) : i] = readVector(property(entry, 'embedding'));
  });
  const dimensions = vectors[0]?.length ?? 0;
  for (let i = 0; i < count; i++) {
    if (vectors[i]?.length !== dimensions) throw new BadAnswer('embeddings missing or of different lengths');
  }
  return vectors;
}

const property = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;

/** Services may return embeddings out of order; without an `index` they are in order. */
function position(entry: unknown, fallback: number, count: number): number {
  const index = property(entry, 'index') ?? fallback;
  if (Number.isInteger(index) && (index as number) >= 0 && (index as number) < count) return index as number;
  throw new BadAnswer('an embedding for a text that was not sent');
}

function readVector(embedding: unknown): Float32Array {
  const vector = typeof embedding === 'string' ? fromBase64(embedding) : fromNumbers(embedding);
  if (vector.length === 0) throw new BadAnswer('an embedding without numbers');
  if (!vector.every(Number.isFinite)) throw new BadAnswer('an embedding with infinite or missing numbers');
  // Vector search would never find such a memory.
  if (vector.every((value) => value === 0)) throw new BadAnswer('an embedding of nothing but zeros');
  return vector;
}

function fromBase64(text: string): Float32Array {
  const bytes = new Uint8Array(Buffer.from(text, 'base64'));
  if (bytes.length % Float32Array.BYTES_PER_ELEMENT !== 0) throw new BadAnswer('an embedding cut short');
  return new Float32Array(bytes.buffer);
}

function fromNumbers(embedding: unknown): Float32Array {
  if (!Array.isArray(embedding)) throw new BadAnswer('an entry without an embedding');
  if (!embedding.every((value) => typeof value === 'number')) throw new BadAnswer('an embedding of something else');
  return Float32Array.from(embedding);
}

const PROVIDER = 'openai';

/** Statuses for a text that the service rejects: too long, empty, not allowed. */
const REJECTED_TEXT: ReadonlySet<number | undefined> = new Set([400, 413, 422]);

const isRejectedText = (error: unknown): boolean => error instanceof APIError && REJECTED_TEXT.has(error.status);

/** Maps a failed request to an `OmpError`. The messages disclose nothing about the service. */
function toOmpError(failed: unknown, { api_key }: OpenAiOptions): OmpError {
  const cause = loggable(failed, api_key);
  if (isRejectedText(failed)) {
    return rejectedText({ provider: PROVIDER, cause });
  }
  if (failed instanceof APIError && failed.status === 429 && failed.code !== 'insufficient_quota') {
    const wait = waitOf(failed);
    const message = 'The embedding service limits the rate of requests.';
    const retryAfter = wait && Math.ceil(wait / 1_000);
    return new OmpError('rate_limited', message, { provider: PROVIDER, cause, ...(retryAfter && { retryAfter }) });
  }
  const message =
    failed instanceof APIConnectionTimeoutError
      ? 'The embedding service did not answer in time.'
      : 'The embedding service failed.';
  return new OmpError('provider_error', message, { provider: PROVIDER, cause, down: downOf(failed) });
}

const waitOf = ({ headers }: APIError): number | undefined => Number(headers?.get(WAIT_MS)) || undefined;

/** Statuses whose reason is about the account or the service. That of others may quote the text. */
const ABOUT_NO_TEXT: ReadonlySet<number> = new Set([401, 402, 403, 404, 429, 503]);

/** The error without the response, which may contain the text: its status, a well-formed code, and a reason that quotes no text. */
function loggable(failed: unknown, api_key: string): unknown {
  if (!(failed instanceof APIError) || failed.status === undefined) return failed;
  const code = /^[a-z0-9_.-]{1,64}$/i.test(failed.code ?? '') ? `, ${failed.code}` : '';
  const reason = ABOUT_NO_TEXT.has(failed.status) ? reasonOf(failed, api_key) : '';
  return new FailedStatus(failed.status, `the service answered HTTP ${failed.status}${code}${reason}`);
}

/** Characters of a reason that an operator sees. */
const MAX_REASON = 300;

/** The service's own reason, for the operator, who may be shown anything but the key. */
function reasonOf({ status, message }: APIError, api_key: string): string {
  const reason = message.slice(`${status} `.length).replaceAll(/\s+/g, ' ').trim();
  if (reason === '' || reason === 'status code (no body)') return '';
  return `: "${beginningOf(reason.replaceAll(api_key || '\0', '[key]'), MAX_REASON)}"`;
}

/**
 * Whether a failure counts towards the circuit breaker. A status below 500 says that the key, the model or the quota is wrong. One text may
 * be the reason of no answer in time, of a status 500 and of an answer without vectors, so a probe decides (Decision 28).
 */
function downOf(failed: unknown): OmpError['down'] {
  if (failed instanceof BadAnswer || failed instanceof APIConnectionTimeoutError) return 'suspected';
  const status = failed instanceof APIError ? failed.status : undefined;
  if (status === 500 || status === 408) return 'suspected';
  return status === undefined || status > 500;
}

/** The error of a failed start, with the setting to check and the service's own reason: its only text was ours. Contains no key. */
function toStartError(failed: unknown, api_key: string): Error {
  return new Error(`The embedding service does not work: ${startErrorDetail(failed, api_key)}`, {
    cause: loggable(failed, api_key),
  });
}

function startErrorDetail(failed: unknown, api_key: string): string {
  if (failed instanceof BadAnswer) return `${failed.message}. Is OPENAI_BASE_URL an OpenAI-compatible API?`;
  if (failed instanceof APIConnectionTimeoutError) {
    return 'no answer in time. Check OPENAI_BASE_URL and OMP_EMBEDDING_TIMEOUT_MS.';
  }
  if (!(failed instanceof APIError) || failed.status === undefined) {
    return 'it cannot be reached. Check OPENAI_BASE_URL.';
  }
  const { status } = failed;
  const answer = `HTTP ${status}${reasonOf(failed, api_key)}`;
  if (status === 401 || status === 403) return `it rejected the key (${answer}). Check OPENAI_API_KEY.`;
  if (status === 429) return `its rate limit or quota is used up (${answer}). Check the account behind OPENAI_API_KEY.`;
  return `it answered ${answer}. Check OPENAI_BASE_URL and OMP_EMBEDDING_MODEL.`;
}
