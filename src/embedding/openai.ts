import OpenAI from 'openai';
import type { Call, Embedder } from '#contract';
import { openHttpFetch } from './http-fetch.ts';
import type { OpenAiOptions } from './open.ts';
import { BadAnswer, readVectors } from './openai-answer.ts';
import { isRefusal, toOmpError, toStartError } from './openai-errors.ts';

const OPENAI_URL = 'https://api.openai.com/v1';

/** A kept connection that the service has just closed, or a restart behind a balancer, deserves one more try. */
const MAX_RETRIES = 1;

type Accompanying = Pick<Call, 'signal' | 'trace'>;
type Request = (texts: readonly string[], call: Accompanying, dimensions?: number) => Promise<Float32Array[]>;

/**
 * Any service that speaks OpenAI's embeddings API. Raw vectors. A first request makes sure that it works and finds
 * the length of its vectors; throws a plain `Error` that names the setting to look at.
 * Errors of `embed`: `rate_limited`; `invalid_request` when the service refuses the text; else `provider_error`.
 */
export async function openOpenAi(options: OpenAiOptions): Promise<Embedder> {
  const transport = openHttpFetch();
  try {
    const request = requester(options, transport.fetch);
    const { dimensions, shorten } = await probe(request, options);
    return {
      model: options.model,
      dimensions,
      async embed(texts, _purpose, call) {
        try {
          const vectors = await request(texts, call, shorten);
          const length = vectors[0]?.length ?? dimensions;
          if (length !== dimensions) throw new BadAnswer(`embeddings of ${length} numbers instead of ${dimensions}`);
          return vectors;
        } catch (error) {
          // Given up, for a reason that tells more.
          call.signal.throwIfAborted();
          throw toOmpError(error);
        }
      },
      close: async () => transport.close(),
    };
  } catch (error) {
    transport.close();
    throw error;
  }
}

function requester(options: OpenAiOptions, fetch: OpenAI['fetch']): Request {
  const client = new OpenAI({
    // The client insists on a key; a service that wants none ignores it.
    apiKey: options.api_key || 'none',
    baseURL: options.base_url ?? OPENAI_URL,
    timeout: options.timeout_ms,
    maxRetries: MAX_RETRIES,
    // Its debug log would hold the texts.
    logLevel: 'off',
    fetch,
  });
  return async (texts, { signal, trace }, dimensions) => {
    const input = [...texts];
    // Asked for by name, the client leaves the answer alone: by default it takes number arrays for base64.
    const answer = await client.embeddings.create(
      { model: options.model, input, encoding_format: 'base64', ...(dimensions && { dimensions }) },
      { signal, ...(trace && { headers: trace.headers() }) },
    );
    return readVectors(answer, texts.length);
  };
}

/**
 * Many services reject the parameter `dimensions`, so it is sent only when the model's own length differs from the
 * configured one.
 */
async function probe(request: Request, { model, dimensions }: OpenAiOptions) {
  const lengthAsking = async (asked?: number): Promise<number | undefined> => {
    try {
      return (await request(['memory'], { signal: new AbortController().signal }, asked))[0]?.length;
    } catch (error) {
      if (asked !== undefined && isRefusal(error)) return undefined;
      throw toStartError(error);
    }
  };
  const natural = (await lengthAsking()) as number;
  if (dimensions === undefined || dimensions === natural) return { dimensions: natural, shorten: undefined };
  if ((await lengthAsking(dimensions)) === dimensions) return { dimensions, shorten: dimensions };
  throw new Error(
    `OMP_EMBEDDING_DIMENSIONS is ${dimensions}, but the model ${model} gives vectors of ${natural} numbers and the ` +
      `service does not change that. Set OMP_EMBEDDING_DIMENSIONS to ${natural}, or leave it out.`,
  );
}
