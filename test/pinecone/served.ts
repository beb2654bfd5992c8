import { inspect } from 'node:util';
import { expect } from 'vitest';
import { compose } from '../../src/core/compose.ts';
import { OPEN } from '../../src/core/principal.ts';
import { withEmbedder } from '../../src/core/with-embedder.ts';
import { createApp } from '../../src/http/app.ts';
import { listen } from '../../src/http/listen.ts';
import { openProvider } from '../../src/registry.ts';
import { type Client, clientOf, type Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { contextOf } from '../support/requests.ts';
import { APP_LIMITS, gateOn, type LogLine, recordingLog, UNHURRIED_PINECONE } from '../support/subject.ts';
import type { WireError, WireErrorCode } from '../support/wire.ts';

/** What no client may be told and no log may hold. */
export const API_KEY = 'pcsk-0123456789-key-of-these-tests';
export const NAMESPACE = 'namespace-of-these-tests';

/** The whole gateway on a Pinecone, behind a real socket. */
export interface Served {
  readonly port: number;
  readonly url: string;
  readonly client: Client;
  readonly lines: readonly LogLine[];
  close(): Promise<void>;
}

export async function serveOnPinecone({ url }: { readonly url: string }, options: object = {}): Promise<Served> {
  const log = recordingLog();
  const embedder = hashingEmbedder();
  const provider = withEmbedder(
    compose(
      await openProvider(
        'pinecone',
        { api_key: API_KEY, index_host: url, namespace: NAMESPACE, ...UNHURRIED_PINECONE, ...options },
        contextOf({ embedder, ranking: { mode: 'vector', keyword_weight: 0 }, log }),
      ),
    ),
    embedder,
    log,
  );
  const { gate, auditQueue } = gateOn(provider, log);
  const app = createApp({ gate, authenticator: OPEN, log, ...APP_LIMITS });
  const { port, close } = await listen(app, { host: '127.0.0.1', port: 0, log, ...APP_LIMITS });
  const own = `http://127.0.0.1:${port}`;
  return {
    port,
    url: own,
    client: clientOf((path, init) => fetch(own + path, init)),
    lines: log.lines,
    close: async () => {
      await close();
      await auditQueue.close();
      await provider.close();
    },
  };
}

/** What only Pinecone, its SDK, the system or our own sources would say. */
const INNER = [
  API_KEY,
  NAMESPACE,
  /127\.0\.0\.1|localhost|https?:/i,
  /Pinecone[A-Z]|pinecone-database|PineconeFailure|x-pinecone|api-key/,
  /fetch failed|undici|ECONN|EPIPE|socket|abort|SyntaxError|JSON|<html/,
  /Invalid API Key|Forbidden|Internal error|Bad request|reached the request limit|status \d/,
  /upsert|topK|vector|describe_index/i,
];

/** Asserts that a reply is what a client is told of a Pinecone that fails, and no more. */
export function expectFailure(reply: Reply, code: Extract<WireErrorCode, 'provider_error' | 'rate_limited'>): string {
  const error: WireError['error'] = expectError(reply, code);
  expect(error.provider).toBe('pinecone');
  const told = `${reply.text} ${[...reply.headers].flat().join(' ')}`;
  for (const inner of INNER) expect(told).not.toMatch(inner);
  return error.message;
}

/** Asserts that the log holds neither the key nor the address of Pinecone nor any of these texts. */
export function expectQuietLog(lines: readonly LogLine[], ...secrets: readonly string[]): void {
  const text = inspect(lines, { depth: 12, maxArrayLength: null, maxStringLength: null });
  for (const secret of [API_KEY, ...secrets]) expect(text).not.toContain(secret);
}
