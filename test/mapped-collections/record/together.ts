import { withStartupClient } from '../../../providers/postgres/client/startup-client.ts';
import { readTable } from '../../../providers/postgres/mapped/catalogue.ts';
import { recognise, settingsFor } from '../../../providers/postgres/mapped/library-layouts.ts';
import { PRESETS, type Preset } from '../../../providers/postgres/mapped/presets.ts';
import { serveDocumented } from '../../mapped/documented.ts';

/* A library and a gateway on one table of Postgres, while both run: what each reads of what the other wrote. */

/** Sends a command to the program of the library. */
export type Ask = (name: 'add' | 'search' | 'change' | 'remove', ...values: readonly unknown[]) => Promise<unknown>;

/** What the recorder chose where the settings leave a choice. */
const CHOICES: Readonly<Record<string, string>> = {
  OMP_MAPPING_COLLECTION: 'notes',
  OMP_MAPPING_CONTENT: "metadata->>'text'",
  OMP_MAPPING_USER_PATTERN: 'memories.{user}',
};

/** Each step with what came of it. */
export async function together(
  { url, base_url, collection }: { readonly url: string; readonly base_url: string; readonly collection: string },
  ask: Ask,
): Promise<Readonly<Record<string, string>>> {
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
  const { client, close } = await serveDocumented({
    ...{ DATABASE_URL: url, OPENAI_BASE_URL: base_url, OPENAI_API_KEY: 'none', OMP_EMBEDDER: 'openai' },
    ...{ OMP_EMBEDDING_MODEL: 'eight', ...env, ...(read_only === undefined && { OMP_MAPPING_WRITABLE: 'true' }) },
  });
  const said: Record<string, string> = {};
  const step = async (title: string, work: () => Promise<boolean>) => {
    said[title] = await work().then(
      (agrees) => (agrees ? 'agrees' : 'does not agree'),
      (error: Error) => `fails: ${error.message}`,
    );
  };
  const user_id = 'eve';
  const found = async (query: string) =>
    ((await ask('search', query, user_id)) as [string, number][]).map(([text]) => text);
  const gone = async (id: string) => (await client.ask(client.byId(id))).status === 404;
  let [id, other] = ['', ''];
  try {
    await step('the library adds', async () => {
      id = (await ask('add', 'plays the flute', { user_id })) as string;
      return (await client.search({ user_id, q: 'plays the flute' }))[0]?.memory.id === id;
    });
    await step('the library changes', async () => {
      await ask('change', id, 'plays the oboe', { user_id });
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
        await ask('change', other, 'hums alone', { user_id });
        return (await client.get(other)).content === 'hums alone';
      });
      await step('the library deletes what the gateway added', async () => {
        await ask('remove', other);
        return gone(other);
      });
      await step('the gateway deletes what the library added', async () => {
        const more = (await ask('add', 'rows a boat', { user_id })) as string;
        await client.remove(more);
        return !(await found('rows a boat')).includes('rows a boat');
      });
    }
    await step('the library deletes', async () => {
      for (const memory of (await client.list({ user_id })).items) await ask('remove', memory.id);
      return (await client.list({ user_id })).items.length === 0;
    });
    return said;
  } finally {
    await close();
  }
}
