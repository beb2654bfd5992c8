import { defineProvider } from '#contract';
import { adoptEmbedder } from './adopt.ts';
import { openDatabase } from './database.ts';
import { PROVIDER } from './errors.ts';
import { createKeyStore } from './keys.ts';
import { Options } from './options.ts';
import { openProvider } from './provider.ts';

/** Postgres with pgvector: a server, or the embedded one in the data folder. One code path over `pg`, two engines. */
export default defineProvider({
  name: PROVIDER,
  options: Options,
  async open(options, context) {
    const { embedder, log } = context;
    const database = await openDatabase(options, context, (client, names) =>
      adoptEmbedder(client, names, embedder, log),
    );
    try {
      return await openProvider(database, options, context);
    } catch (error) {
      await database.close();
      throw error;
    }
  },
  async openKeys(options, context) {
    const { db, names, close } = await openDatabase(options, context, async () => {});
    return { ...createKeyStore({ db, names }), close };
  },
});
