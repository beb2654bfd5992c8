import { isDeepStrictEqual } from 'node:util';
import type { Presets } from '#provider';
import { CHROMA, LANCEDB, MILVUS, QDRANT } from '../../../providers/collections/mapped/presets.ts';
import { withStartupClient } from '../../../providers/postgres/client/startup-client.ts';
import { readTable } from '../../../providers/postgres/mapped/catalogue.ts';
import { recognise, settingsFor } from '../../../providers/postgres/mapped/library-layouts.ts';
import { PRESETS, type Preset } from '../../../providers/postgres/mapped/presets.ts';
import { serveDocumented } from '../../mapped/documented.ts';
import type { Client } from '../../support/client.ts';
import { hashingEmbedder } from '../../support/hashing-embedder.ts';
import { openSubject } from '../../support/subject.ts';
import { type Fixture, presetOf } from '../fixture.ts';

const DATABASES = { qdrant: QDRANT, chroma: CHROMA, milvus: MILVUS, lancedb: LANCEDB };

/* A library and a gateway on one collection or table, while both run: what each reads of what the other wrote. */

/** Sends a command to the program of the library. */
export type Ask = (name: 'add' | 'search' | 'change' | 'remove', ...values: readonly unknown[]) => Promise<unknown>;

/** What the recorder chose where the settings leave a choice. */
const CHOICES: Readonly<Record<string, string>> = {
  OMP_MAPPING_COLLECTION: 'notes',
  OMP_MAPPING_CONTENT: "metadata->>'text'",
  OMP_MAPPING_USER_PATTERN: 'memories.{user}',
};

interface Served {
  readonly client: Client;
  /** Why the gateway may not write. */
  readonly read_only: string | undefined;
  /** What every document has besides its user: some libraries make columns of the keys of the first one, and want all of them. */
  readonly metadata: object;
  /** The key of the metadata that the gateway reads as tags, and that of times; undefined: there is none. */
  readonly keys?: { readonly tags: string; readonly created: string } | undefined;
  close(): Promise<void>;
}

/** A gateway on what a library keeps in a vector database, with its preset. */
export async function serveCollection({
  database,
  library,
  language,
  url,
  collection,
}: Pick<Fixture, 'database' | 'library' | 'language' | 'collection'> & { readonly url: string }): Promise<Served> {
  const presets = DATABASES[database as keyof typeof DATABASES] as Presets;
  const preset = presetOf({ library, language }, presets);
  const { read_only, user = '' } = presets[preset] as Presets[string];
  const place = database === 'lancedb' ? { folder: url, table: collection } : { url, collection };
  const options = { ...place, preset, writable: read_only === undefined };
  const open = (more: object) =>
    openSubject({ provider: database, options: { ...options, ...more }, mode: 'vector', embedder: hashingEmbedder(8) });
  const metadata = { topic: 'music', stars: 1 };
  const keys = { tags: 'labels', created: 'written' };
  const [tags_field, created_field] = Object.values(keys).map((key) => user.replace('user_id', key));
  // A column that is not there can be named by no setting.
  return open({ tags_field, created_field }).then(
    (subject) => ({ ...subject, read_only, metadata, keys }),
    async () => ({ ...(await open({})), read_only, metadata }),
  );
}

/** A gateway on a table of Postgres, with the settings that `doctor` names. */
export async function serveTable({
  url,
  base_url,
  collection,
}: {
  readonly url: string;
  readonly base_url: string;
  readonly collection: string;
}): Promise<Served> {
  const [schema, name] = collection.split('.') as [string, string];
  const lookup = await withStartupClient({ connectionString: url }, (client) => readTable(client, schema, name, ''));
  const table = 'table' in lookup ? lookup.table : undefined;
  const layout = table && recognise(table)?.layout;
  const own = [`PRESET=custom`, `TABLE=${name}`, 'ID=id', 'EMBEDDING=embedding', 'CONTENT=content', 'USER_ID=user_id'];
  const settings = layout && table ? settingsFor(layout, table) : own.map((each) => `OMP_MAPPING_${each}`);
  // Columns of models have defaults in the application alone, so that a table takes no rows of others.
  const { read_only }: Pick<Preset, 'read_only'> = layout ? PRESETS[layout.preset] : { read_only: 'models' };
  const env = Object.fromEntries(
    settings.map((each) =>
      each
        .split(/=(.*)/s)
        .slice(0, 2)
        .map((part) => part.replace(/^"|"$/g, '')),
    ),
  );
  for (const [key, value] of Object.entries(CHOICES)) if (env[key]?.includes('…')) env[key] = value;
  if (table?.columns.get(String(env.OMP_MAPPING_ID))?.base === 'uuid') env.OMP_MAPPING_NEW_IDS = 'uuid';
  const served = await serveDocumented({
    ...{ DATABASE_URL: url, OPENAI_BASE_URL: base_url, OPENAI_API_KEY: 'none', OMP_EMBEDDER: 'openai' },
    ...{ OMP_EMBEDDING_MODEL: 'eight', ...env, ...(read_only === undefined && { OMP_MAPPING_WRITABLE: 'true' }) },
  });
  return { ...served, read_only, metadata: {} };
}

/** Each step with what came of it. */
export async function together(
  { client, read_only, metadata, keys }: Served,
  ask: Ask,
): Promise<Readonly<Record<string, string>>> {
  const said: Record<string, string> = {};
  const step = async (title: string, work: () => Promise<boolean>) => {
    said[title] = await work().then(
      (agrees) => (agrees ? 'agrees' : 'does not agree'),
      (error: Error) => `fails: ${error.message}`,
    );
  };
  const user_id = 'eve';
  const owned = { user_id, ...metadata };
  const hits = async (query: string) =>
    (await ask('search', query, user_id)) as [text: string, score: number, metadata?: Record<string, unknown>][];
  const found = async (query: string) => (await hits(query)).map(([text]) => text);
  const gone = async (id: string) => (await client.ask(client.byId(id))).status === 404;
  let [id, other] = ['', ''];
  await step('the library adds', async () => {
    id = (await ask('add', 'plays the flute', owned)) as string;
    return (await client.search({ user_id, q: 'plays the flute' }))[0]?.memory.id === id;
  });
  await step('the library changes', async () => {
    await ask('change', id, 'plays the oboe', owned);
    return (await client.list({ user_id })).items.map(({ content }) => content).join() === 'plays the oboe';
  });
  if (read_only === undefined) {
    await step('the gateway adds', async () => {
      other = (await client.add({ user_id, content: 'sings in a choir' })).id;
      return (await found('sings in a choir'))[0] === 'sings in a choir';
    });
    await step('the gateway changes', async () => {
      await client.update(other, { content: 'sings alone' });
      const all = await found('sings alone');
      return all[0] === 'sings alone' && !all.includes('sings in a choir');
    });
    await step('the library changes what the gateway added', async () => {
      await ask('change', other, 'hums alone', owned);
      return (await client.get(other)).content === 'hums alone';
    });
    await step('the library deletes what the gateway added', async () => {
      await ask('remove', other);
      return gone(other);
    });
    await step('the gateway deletes what the library added', async () => {
      const more = (await ask('add', 'rows a boat', owned)) as string;
      await client.remove(more);
      return !(await found('rows a boat')).includes('rows a boat');
    });
  }
  if (keys) {
    await step('the gateway reads tags and times of the library', async () => {
      const more = { [keys.tags]: ['sea', 'sky'], [keys.created]: '2026-03-01T09:30:00Z' };
      const added = (await ask('add', 'swims far out', { ...owned, ...more })) as string;
      const { items } = await client.list({
        user_id,
        tag: 'sky',
        since: '2026-03-01T09:00:00Z',
        until: '2026-03-01T10:00:00Z',
      });
      return items.length === 1 && items[0]?.id === added && items[0].tags?.join() === 'sea,sky';
    });
    if (read_only === undefined)
      await step('the library reads tags and times of the gateway', async () => {
        const { created_at } = await client.add({ user_id, content: 'dives deep', tags: ['sea', 'sun'] });
        const read = (await hits('dives deep'))[0]?.[2];
        return isDeepStrictEqual([read?.[keys.tags], read?.[keys.created]], [['sea', 'sun'], created_at]);
      });
  }
  await step('the library deletes', async () => {
    for (const memory of (await client.list({ user_id })).items) await ask('remove', memory.id);
    return (await client.list({ user_id })).items.length === 0;
  });
  return said;
}
