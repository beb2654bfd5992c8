import type { Provider } from '#contract';
import type { Pinecone } from '../pinecone-server/start.ts';
import { openSubject } from '../support/subject.ts';
import { openStore, type Store } from './world.ts';

export interface PineconeStoreOptions {
  /** Of the provider. */
  readonly options?: object;
  readonly alter?: (provider: Provider) => Provider;
}

/** A gateway on this Pinecone. */
export const openPineconeStore = (
  label: string,
  { url }: Pinecone,
  { options = {}, alter }: PineconeStoreOptions = {},
): Promise<Store> =>
  openStore(label, (more) =>
    openSubject({
      provider: 'pinecone',
      options: { api_key: 'test', index_host: url, ...options },
      mode: 'vector',
      ...(alter && { alter }),
      ...more,
    }),
  );

/** What everything is held against: scopes of its own, and vectors alone rank. */
export const openModel = (): Promise<Store> =>
  openStore('memory', (more) =>
    openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'vector', ...more }),
  );
