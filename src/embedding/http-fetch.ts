import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { readAtMost } from '#toolbox';

export interface HttpFetch {
  readonly fetch: (url: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /** Closes the keep-alive connections. */
  close(): void;
}

/** Maximum bytes of a response: more than a batch of the longest vectors as text. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * The part of `fetch` that the openai client needs, on Node's HTTP client with keep-alive connections. Responses have only
 * the headers that the openai client reads. A rate limit is marked as final, so that the caller gets the error at once: the
 * openai client would wait for `Retry-After`.
 */
export function openHttpFetch(maxBytes = MAX_BYTES): HttpFetch {
  const plain = new http.Agent({ keepAlive: true });
  const secure = new https.Agent({ keepAlive: true });

  async function send(url: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const target = new URL(String(url));
    const [client, agent] = target.protocol === 'https:' ? [https, secure] : [http, plain];
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = client.request(target, {
        agent,
        method: init.method ?? 'GET',
        headers: Object.fromEntries(new Headers(init.headers)),
        ...(init.signal && { signal: init.signal }),
      });
      request.once('response', resolve);
      request.on('error', reject);
      request.end(init.body);
    });
    const body = await readAtMost(answer, maxBytes);
    return new Response(body.length > 0 ? body : null, { status: answer.statusCode ?? 0, headers: headersOf(answer) });
  }

  return {
    fetch: send,
    close() {
      plain.destroy();
      secure.destroy();
    },
  };
}

function headersOf({ statusCode, headers }: IncomingMessage): Headers {
  const kept = new Headers({ 'content-type': headers['content-type'] ?? '' });
  if (statusCode !== 429) return kept;
  kept.set('x-should-retry', 'false');
  if (headers['retry-after'] !== undefined) kept.set('retry-after', headers['retry-after']);
  return kept;
}
