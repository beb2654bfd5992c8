import { defineProvider } from '#contract';
import { adoptEmbedder } from './adopt.ts';
import { openDatabase } from './database.ts';
import { PROVIDER } from './errors.ts';
import { Options } from './options.ts';
import { openProvider } from './provider.ts';

/**
 * Postgres with pgvector: a server, or the embedded one in the data folder. One code path over `pg`, two engines. With a
 * `mapping` a table that somebody else fills.
 */
export default defineProvider({
  name: PROVIDER,
  options: Options,
  async open(options, context) {
    const { mapping } = options;
    if (mapping) return (await import('./mapped/provider.ts')).openMapped({ ...options, mapping }, context);
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
    // Nothing of ours is made in somebody else's database.
    if (options.mapping) return undefined;
    const { keys, close } = await openDatabase(options, { ...context, join: true }, async () => {});
    return { ...keys, close };
  },
  diagnose: async (options, context) => (await import('./doctor/diagnose.ts')).diagnose(options, context),
  reembed: async (options, context, request) => (await import('./reembed.ts')).reembed(options, context, request),
});
