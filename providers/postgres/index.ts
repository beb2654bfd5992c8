import { defineProvider } from '#provider';
import { runOn, statement } from './client/connections.ts';
import { PROVIDER } from './postgres-errors.ts';
import { Options } from './postgres-options.ts';
import { checkCompatibility, lockStore } from './startup/compatibility-check.ts';
import { openDatabase } from './startup/open-database.ts';
import { createChangeFeed } from './tables/change-feed.ts';
import { openTables } from './tables/provider.ts';

/**
 * Postgres with pgvector: a server, or the embedded engine in the data folder, both through `pg`. It serves the gateway's
 * tables, or with `mapping` a table that another application fills.
 */
export default defineProvider({
  specVersion: 2,
  name: PROVIDER,
  options: Options,
  async open(options, context) {
    const { mapping } = options;
    if (mapping) return (await import('./mapped/mapped-provider.ts')).openMappedTable({ ...options, mapping }, context);
    const { embedder, log } = context;
    const database = await openDatabase(options, context, (client, names) =>
      checkCompatibility(client, names, embedder, log),
    );
    try {
      return await openTables(database, options, context);
    } catch (error) {
      await database.close();
      throw error;
    }
  },
  async openKeys(options, context) {
    // The gateway creates nothing in the database of a mapped table.
    if (options.mapping) return undefined;
    const { keys, close } = await openDatabase(options, { ...context, join: true }, async () => {});
    return { ...keys, close };
  },
  async openWebhooks(options, context) {
    if (options.mapping) return undefined;
    const { db, names, embedded, webhooks, close } = await openDatabase(
      options,
      { ...context, join: true },
      // The feed reads what the first gateway writes there.
      async (client, names) => void (await lockStore(client, names)),
    );
    return { webhooks, changes: createChangeFeed(names, runOn(db, statement), embedded).changes, close };
  },
  diagnose: async (options, context) => (await import('./commands/doctor.ts')).diagnose(options, context),
  reembed: async (options, context, request) =>
    (await import('./commands/reembed.ts')).reembed(options, context, request),
  backup: async (options, context, file) => (await import('./commands/backup.ts')).backup(options, context, file),
  restore: async (options, context, file, without) =>
    (await import('./commands/backup.ts')).restore(options, context, file, without),
});
