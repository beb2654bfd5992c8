import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { Embedder, ProviderContext, ReembedOutcome, ReembedRequest, ReembedState } from '#contract';
import { called, warnOfLength, withoutVector } from './adopt.ts';
import { type BootOptions, boot } from './boot.ts';
import { type Server, startServer } from './database.ts';
import { clearText } from './ingestion/statements.ts';
import { type Names, withVectorsIn } from './names.ts';
import type { Options } from './options.ts';
import { takeTurn } from './reembed/alone.ts';
import { begin, makeIndexes, targetOf } from './reembed/begin.ts';
import { CLOCK, type Clock } from './reembed/clock.ts';
import { fill } from './reembed/fill.ts';
import { createPace, patiently } from './reembed/patience.ts';
import { switchOver } from './reembed/switch.ts';
import { lockStore } from './store-row.ts';

/** Most memories that are embedded while writers wait. */
const FEW = 16;
/** Of refused memories, told by their ids. */
const TOLD = 10;

/**
 * Embeds the memories of our tables anew, by the embedder of the context, beside the vectors in use; then switches over.
 * Gateways may go on serving meanwhile. Wherever it ends, another run goes on from there. Throws a plain `Error` that an
 * operator can act on.
 */
export async function reembed(
  options: Options,
  context: ProviderContext,
  request: ReembedRequest,
  clock: Clock = CLOCK,
): Promise<ReembedOutcome> {
  const { embedder, data_dir, log } = context;
  if (options.mapping) {
    throw new Error(
      'OMP_MAPPING_PRESET is set: the vectors of that table are its owner\'s, who makes them anew; "reembed" is for tables of the gateway\'s own',
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
    if (request.dry_run) return await look({ config, schema, log }, embedder, request);
    const { names } = await boot({ config, schema, log, check: async () => {} });
    warnOfLength(embedder, log);
    return await takeTurnAndRun({ server, schema, names }, { embedder, request, clock });
  } finally {
    await server.close();
  }
}

/** What a run would do. */
async function look(
  where: Pick<BootOptions, 'config' | 'schema' | 'log'>,
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
    outcomes.push({
      ...identities(store.made_by, to),
      total,
      done: total - left,
      embedded: 0,
      characters,
      switched: false,
    });
  };
  await boot({ ...where, check, undo: true });
  return outcomes[0] as ReembedOutcome;
}

const identities = (from: ReembedOutcome['from'], { model, dimensions }: Embedder) => ({
  from,
  to: { model, dimensions },
});

interface Where {
  readonly server: Server;
  readonly schema: string;
  readonly names: Names;
}

interface How {
  readonly embedder: Embedder;
  readonly request: ReembedRequest;
  readonly clock: Clock;
}

async function takeTurnAndRun(where: Where, how: How): Promise<ReembedOutcome> {
  const { config, embedded } = where.server;
  // The embedded engine has one session, and the lock on its folder keeps others away.
  const turn = embedded ? undefined : await takeTurn(config, where.schema);
  const client = new pg.Client({ ...config, keepAlive: true });
  // What is under way on it fails and tells.
  client.on('error', () => {});
  try {
    await client.connect();
    const { signal } = how.request;
    return await run(where, client, { ...how, signal: turn ? AbortSignal.any([signal, turn.lost]) : signal });
  } finally {
    await client.end();
    await turn?.end();
  }
}

async function run(
  { server, names }: Where,
  client: pg.Client,
  { embedder, request, clock, signal }: How & { readonly signal: AbortSignal },
): Promise<ReembedOutcome> {
  const { per_minute } = request;
  const locking = { client, clock, signal };
  const patience = { per_minute, clock, signal };
  const pace = createPace(patience);
  const batch_size = Math.min(request.batch_size, per_minute ?? request.batch_size);
  const few = Math.min(FEW, batch_size);

  const { column, inUse, from } = await begin(locking, names, { to: embedder, restart: request.restart });
  const next = withVectorsIn(column, names);
  let state: ReembedState = await count(client, next);
  let embedded = 0;
  const written = (memories: number) => {
    embedded += memories;
    state = { ...state, done: state.done + memories };
    request.progress(state);
  };
  const outcome = (switched: boolean): ReembedOutcome => ({
    ...identities(from, embedder),
    ...state,
    embedded,
    characters: null,
    switched,
  });
  const embed = patiently(embedder, pace, patience);
  try {
    if (!inUse) {
      const concurrently = !server.embedded;
      await makeIndexes(client, next, { dimensions: embedder.dimensions, concurrently });
    }
    for (;;) {
      const { refused } = await fill(locking, next, { batch_size, embed, written });
      if (inUse) await client.query(clearText(next));
      if (refused.length > 0) throw new Error(refusal(refused, embedder));
      state = await count(client, next);
      // What gateways put into the queue meanwhile is theirs to embed.
      if (inUse && (await client.query(withoutVector(next))).rowCount === 0) return outcome(true);
      if (inUse) continue;
      await pace(few);
      const last = await switchOver(locking, { names, column, embedder, few });
      if (last === undefined) continue;
      written(last);
      state = { ...state, done: state.total };
      return outcome(true);
    }
  } catch (error) {
    if (!request.signal.aborted || error !== request.signal.reason) throw error;
    return outcome(false);
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

function refusal(ids: readonly string[], embedder: Embedder): string {
  const more = ids.length > TOLD ? ` and ${ids.length - TOLD} more` : '';
  return `${called(embedder)} refuses the content of ${ids.length === 1 ? 'one memory' : `${ids.length} memories`} (${ids.slice(0, TOLD).join(', ')}${more}), maybe for its length; change or delete what it refuses, then run "omp-gateway reembed" again. Everything else is embedded`;
}
