import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Embedder, Log, MaintenanceContext, ReembedOutcome, ReembedRequest, ReembedState } from '#provider';
import type { Options } from '../postgres-options.ts';
import type { Buckets } from '../scaling/placement.ts';
import { allShards } from '../scaling/shards.ts';
import { labelOf, lockStore, warnOfLength, withoutVector } from '../startup/compatibility-check.ts';
import { type PrepareOptions, prepareDatabase, type Server, startServer } from '../startup/open-database.ts';
import { addUsage } from '../tables/embedding-usage.ts';
import { clearText } from '../tables/ingestion-queue.ts';
import { type Names, withVectorsIn } from '../tables/names.ts';
import {
  begin,
  createIndexes,
  type ReembedSession,
  readMissing,
  switchOver,
  targetOf,
  withLocks,
  writeVectors,
} from './reembed-columns.ts';
import { CLOCK, type Clock, callWith, createEmbedTexts, createPace, type EmbedTexts } from './reembed-retry.ts';

/** Memories that may be embedded while writers wait. */
const SWITCH_LIMIT = 16;
/** How long writers may wait for those vectors. */
const SWITCH_MS = 5_000;
/** Ids shown of rejected memories. */
const SHOWN_IDS = 10;

/**
 * Embeds the stored memories again, with the embedder of the context, into a second column, then switches to that. Gateways
 * may serve meanwhile. A run that ended early is continued by the next one. Throws a plain `Error` that an operator can act on.
 */
export async function reembed(
  options: Options,
  context: MaintenanceContext,
  request: ReembedRequest,
  clock: Clock = CLOCK,
): Promise<ReembedOutcome> {
  const { embedder, data_dir, log } = context;
  if (options.mapping) {
    throw new Error(
      'OMP_MAPPING_PRESET is set: the application that fills the mapped table makes its vectors; "reembed" works on the gateway\'s tables only',
    );
  }
  if (!embedder) throw new Error('with OMP_SEARCH_MODE=keyword there is no embedder; set it to hybrid or vector');
  if (options.url === undefined && !existsSync(join(data_dir, 'postgres'))) {
    throw new Error(`nothing is stored in ${data_dir}; check OMP_DATA_DIR, or DATABASE_URL`);
  }
  const server = await startServer(options, context);
  try {
    const { config } = server;
    const { schema } = options;
    if (request.dry_run) return await dryRun({ config, schema, log }, embedder, request);
    const { names } = await prepareDatabase({ config, schema, log, check: async () => {} });
    warnOfLength(embedder, log);
    return await runLocked({ server, schema, names, embedder, request, clock, log });
  } finally {
    await server.close();
  }
}

/** Counts what a run would do. */
async function dryRun(
  database: Pick<PrepareOptions, 'config' | 'schema' | 'log'>,
  to: Embedder,
  { restart }: ReembedRequest,
): Promise<ReembedOutcome> {
  const outcomes: ReembedOutcome[] = [];
  const check = async (client: pg.Client, names: Names) => {
    const store = await lockStore(client, names);
    const target = targetOf(store, to, restart);
    const missing = target ? `${withVectorsIn(target.column, names).embedding} is null` : 'true';
    const { rows } = await client.query<Record<'total' | 'missing' | 'characters', number>>(
      `select count(*)::float8 as total, count(*) filter (where ${missing})::float8 as missing,
         coalesce(sum(length(content)) filter (where ${missing}), 0)::float8 as characters from ${names.memories}`,
    );
    const { total, missing: left, characters } = rows[0] ?? { total: 0, missing: 0, characters: 0 };
    const state = { total, done: total - left, embedded: 0, characters, switched: false };
    outcomes.push({ ...identities(store.made_by, to), ...state });
  };
  await prepareDatabase({ ...database, check, dryRun: true });
  return outcomes[0] as ReembedOutcome;
}

const identities = (from: ReembedOutcome['from'], { model, dimensions }: Embedder) => ({
  from,
  to: { model, dimensions },
});

interface Job {
  readonly server: Server;
  readonly schema: string;
  readonly names: Names;
  readonly embedder: Embedder;
  readonly request: ReembedRequest;
  readonly clock: Clock;
  readonly log: Log;
}

async function runLocked(job: Job): Promise<ReembedOutcome> {
  const { config, embedded } = job.server;
  // The lock on the data folder excludes other runs on the embedded engine.
  const lock = embedded ? undefined : await acquireAdvisoryLock(config, job.schema);
  const client = new pg.Client({ ...config, keepAlive: true });
  // Losing the connection rejects the statement in progress; without a listener it would also end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    const { signal } = job.request;
    const stop = lock ? AbortSignal.any([signal, lock.lost]) : signal;
    return await run(job, { client, clock: job.clock, signal: stop });
  } finally {
    await client.end();
    await lock?.release();
  }
}

interface AdvisoryLock {
  /** Aborted when the lock is lost although the run has not ended. */
  readonly lost: AbortSignal;
  release(): Promise<void>;
}

/**
 * Prevents two runs on one schema from embedding everything twice; correctness does not depend on it. The lock belongs to a
 * transaction on a connection of its own, which works behind a transaction pooler and which ends with the process. It
 * holds no snapshot and no row, so neither vacuum nor a concurrent index build waits for it.
 */
async function acquireAdvisoryLock(config: pg.ClientConfig, schema: string): Promise<AdvisoryLock> {
  const client = new pg.Client({ ...config, keepAlive: true });
  const lost = new AbortController();
  const lose = () =>
    lost.abort(new Error('the connection that holds the advisory lock was lost; run "omp-gateway reembed" again'));
  client.on('error', lose);
  client.on('end', lose);
  await client.connect();
  try {
    await client.query('begin isolation level read committed; set local idle_in_transaction_session_timeout = 0');
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as taken',
      [`omp-gateway reembed ${schema}`],
    );
    // A statement with parameters keeps its snapshot until the next one; this one has no parameters.
    await client.query('select');
    if (!rows[0]?.taken) throw new Error('another "omp-gateway reembed" is running on this schema');
  } catch (error) {
    await client.end();
    throw error;
  }
  return { lost: lost.signal, release: () => client.end() };
}

async function run({ server, names, embedder, request, log }: Job, session: ReembedSession): Promise<ReembedOutcome> {
  const { client } = session;
  const { per_minute } = request;
  const pace = createPace(per_minute, session);
  const embed = createEmbedTexts(embedder, pace, session);
  const batch_size = Math.min(request.batch_size, per_minute ?? request.batch_size);
  const limit = Math.min(SWITCH_LIMIT, batch_size);

  const { column, inUse, from } = await begin(session, names, { to: embedder, restart: request.restart });
  const next = withVectorsIn(column, names);
  const shards = await allShards(names, async (text) => (await client.query(text)).rows);
  let state: ReembedState = await count(client, next);
  let embedded = 0;
  const storeUsage = () => addUsage(client, names, embedder.usage?.take() ?? []);
  const written = async (memories: number) => {
    embedded += memories;
    state = { ...state, done: state.done + memories };
    request.progress(state);
    await storeUsage();
  };
  const outcome = (switched: boolean): ReembedOutcome => ({
    ...identities(from, embedder),
    ...state,
    embedded,
    characters: null,
    switched,
  });
  try {
    if (!inUse) {
      await createIndexes(client, next, { dimensions: embedder.dimensions, concurrently: !server.embedded });
    }
    for (;;) {
      const rejected: string[] = [];
      for (const shard of shards) rejected.push(...(await fill(session, next, { shard, batch_size, embed, written })));
      if (inUse) await client.query(clearText(next));
      if (rejected.length > 0) throw new Error(rejection(rejected, embedder));
      state = await count(client, next);
      // Memories queued by gateways meanwhile are embedded by those.
      if (inUse && (await client.query(withoutVector(next))).rowCount === 0) return outcome(true);
      if (inUse) continue;
      await pace(limit);
      const last = await switchOver(session, {
        names,
        shards,
        column,
        limit,
        embed: (texts) => embedNow(embedder, texts),
      });
      if (last === undefined) continue;
      await written(last);
      state = { ...state, done: state.total };
      return outcome(true);
    }
  } catch (error) {
    if (!request.signal.aborted || error !== request.signal.reason) throw error;
    return outcome(false);
  } finally {
    // Of what has failed.
    await storeUsage().catch((err: unknown) =>
      log.warn({ err }, 'the last usage of the embedding service is not stored'),
    );
  }
}

async function count(client: pg.Client, { memories, embedding }: Names): Promise<ReembedState> {
  const { rows } = await client.query<{ total: number; missing: number }>(
    `select (select count(*) from ${memories})::float8 as total,
       (select count(*) from ${memories} where ${embedding} is null)::float8 as missing`,
  );
  const { total, missing } = rows[0] ?? { total: 0, missing: 0 };
  return { total, done: total - missing };
}

/**
 * One pass over all memories of a shard without a vector. Returns the ids of those that the embedder rejects. On abort it throws the
 * signal's reason between two batches.
 */
async function fill(
  session: ReembedSession,
  names: Names,
  work: {
    readonly shard: Buckets;
    readonly batch_size: number;
    readonly embed: EmbedTexts;
    written(memories: number): Promise<void>;
  },
): Promise<string[]> {
  const { client, signal } = session;
  const { shard } = work;
  const rejected: string[] = [];
  for (let after = ''; ; ) {
    signal.throwIfAborted();
    const rows = await readMissing(client, names, { shard, after, limit: work.batch_size });
    const last = rows.at(-1);
    if (!last) return rejected;
    after = last.id;
    const vectors = await work.embed(rows.map(({ content }) => content));
    const embedded = rows.flatMap((row, i) => {
      const vector = vectors[i];
      if (!vector) rejected.push(row.id);
      return vector ? [{ row, vector }] : [];
    });
    // A deadlock is possible with the update that flags the rows of a large user in another order.
    await work.written((await withLocks(session, () => writeVectors(client, names, shard, embedded))) ?? 0);
  }
}

async function embedNow(embedder: Embedder, texts: readonly string[]): Promise<Float32Array[] | undefined> {
  try {
    return await embedder.embed(texts, 'document', callWith(AbortSignal.timeout(SWITCH_MS)));
  } catch {
    // The next pass embeds them with retries and reports the error.
    return undefined;
  }
}

function rejection(ids: readonly string[], embedder: Embedder): string {
  const more = ids.length > SHOWN_IDS ? ` and ${ids.length - SHOWN_IDS} more` : '';
  return `${labelOf(embedder)} rejects the content of ${ids.length === 1 ? 'one memory' : `${ids.length} memories`} (${ids.slice(0, SHOWN_IDS).join(', ')}${more}), maybe because of its length; change or delete these, then run "omp-gateway reembed" again. Everything else is embedded`;
}
