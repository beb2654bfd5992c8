import { onTestFinished } from 'vitest';
import { type Answer, embeddingsServer, sendJson } from '../embedding/embeddings-server.ts';
import { type RunningGateway, startGateway } from '../process/gateway.ts';
import { clientOf } from '../support/client.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { type LedgerOptions, openLedger } from '../support/ledger.ts';
import { type Load, startLoad } from '../support/load.ts';

/** Short, so that a fault of seconds has an effect. */
const DEADLINE = { OMP_REQUEST_TIMEOUT_MS: '2000' };

const trigrams = hashingEmbedder(64);

/** The response of a working embedding service. */
export const wellEmbedded: Answer = ({ model, input }, response) => {
  void trigrams.embed(input, 'document', undefined as never).then((vectors) => {
    const data = vectors.map((vector, index) => ({ object: 'embedding', index, embedding: [...vector] }));
    sendJson(response, 200, { object: 'list', model, data, usage: { prompt_tokens: 1, total_tokens: 1 } });
  });
};

/** An embedding service with OpenAI's protocol and trigrams as vectors; closed after the test. */
export async function startEmbedding() {
  const service = await embeddingsServer();
  service.answer = wellEmbedded;
  onTestFinished(service.close);
  return service;
}

/** The settings of a gateway that uses this service. */
export const embeddedBy = (base_url: string) => ({
  OMP_SEARCH_MODE: 'hybrid',
  OMP_EMBEDDER: 'openai',
  OMP_EMBEDDING_MODEL: 'trigrams',
  OPENAI_BASE_URL: base_url,
  OMP_EMBEDDING_TIMEOUT_MS: '500',
});

export interface Subject {
  /** The running process. */
  gateway: RunningGateway;
  /** Starts it again with the same settings. */
  again(): Promise<void>;
  readonly load: Load;
  readonly ledgers: readonly ReturnType<typeof openLedger>[];
}

export interface SubjectOptions extends LedgerOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly clients: number;
}

/** A gateway under load from these clients, also after a restart on another port. */
export async function startSubject({ env, clients, ...options }: SubjectOptions): Promise<Subject> {
  const start = () => startGateway({ env: { ...DEADLINE, ...env } });
  let gateway = await start();
  const client = clientOf((path, init) => fetch(gateway.url + path, init));
  const ledgers = Array.from({ length: clients }, () => openLedger(client, options));
  return {
    get gateway() {
      return gateway;
    },
    async again() {
      gateway = await start();
    },
    load: startLoad(ledgers),
    ledgers,
  };
}
