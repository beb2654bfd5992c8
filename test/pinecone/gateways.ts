import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { Call, Embedder, Log } from '#contract';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { callBy, contextOf } from '../support/requests.ts';
import { openStoreOf, type Store } from '../support/stores.ts';
import { UNHURRIED_PINECONE } from '../support/subject.ts';

/** One with every verb that a backend of ours has. */
export type Gateway = Store & Required<Pick<Store, 'add' | 'batch' | 'update' | 'delete' | 'list' | 'search'>>;

export interface GatewayOptions {
  /** On top of key and address. */
  readonly options?: object;
  readonly embedder?: Embedder;
  readonly log?: Log;
}

/** What one gateway opens on the test server. Every call is another gateway. */
export const openGateway = async (
  { url }: Pick<Pinecone, 'url'>,
  { options, embedder = hashingEmbedder(), log }: GatewayOptions = {},
): Promise<Gateway> =>
  (await openStoreOf(
    'pinecone',
    { api_key: 'key-of-the-tests', index_host: url, ...UNHURRIED_PINECONE, ...options },
    contextOf({ embedder, ranking: { mode: 'vector', keyword_weight: 0 }, ...(log && { log }) }),
  )) as Gateway;

/** A server with two gateways that do not know of each other's writes. Nothing lags when a test begins. */
export function useTwoGateways(options: object = {}) {
  const used = {} as { server: Pinecone; here: Gateway; there: Gateway };
  beforeAll(async () => {
    const server = await startPinecone();
    const [here, there] = await Promise.all([openGateway(server, { options }), openGateway(server, { options })]);
    Object.assign(used, { server, here, there });
  });
  beforeEach(async () => {
    await used.server.lag({});
    await used.server.settle();
    await used.server.resetCalls();
  });
  afterAll(async () => {
    await used.here?.close();
    await used.there?.close();
    await used.server?.close();
  });
  return used;
}

/** One client: its latest token goes out with every call, as `X-Consistency-Token` does, to whichever gateway. */
export function createSession(token?: string) {
  const session = {
    token,
    /** How often an answer said that it may lack something. */
    behind: 0,
    call: (): Call =>
      callBy(
        {},
        {
          token: session.token,
          answer: (given) => {
            session.token = given;
          },
          behind: () => {
            session.behind += 1;
          },
        },
      ),
  };
  return session;
}
