/**
 * Throughput and latency of the gateway, as ratios on one machine in one run:
 *   npm run bench [-- --rounds N --seconds N --only get,list,search,add,default,batch,console --engine embedded,server --profile DIR]
 *   npm run bench [-- --memories N --users N --seconds N] -- collections [libsql lancedb qdrant chroma milvus]
 *   npm run bench [-- --memories N --seconds N] -- mapped [notes langchain]: tables of others on the server, beside plain SQL
 * Prints Markdown. `console` (not by default) needs Chromium. The server is the one DATABASE_URL names (in a schema of its own, dropped afterwards); without it only
 * the embedded Postgres is measured.
 */
import { mkdir } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { type BatchResult, measureBatches } from './batch.ts';
import { measureConsole } from './console.ts';
import { measureDefault } from './default.ts';
import { measureEngine } from './engine.ts';
import { batchTable, consoleTable, defaultTable, engineTable, machine } from './report.ts';
import { VERBS } from './workload.ts';

const CONNECTIONS = 16;
/** For the default configuration, where the embedder is the bottleneck. */
const CLIENTS = 8;

const url = process.env.DATABASE_URL || undefined;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    memories: { type: 'string', default: '100000' },
    users: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', default: [...VERBS, 'default', 'batch'].join() },
    engine: { type: 'string', default: url === undefined ? 'embedded' : 'embedded,server' },
    profile: { type: 'string' },
  },
});
const rounds = positive('rounds', values.rounds);
const seconds = positive('seconds', values.seconds);
const only = choices('only', values.only, [...VERBS, 'default', 'batch', 'console']);
const engines = choices('engine', values.engine, ['embedded', 'server']);
if (engines.includes('server') && url === undefined) throw new Error('--engine server needs DATABASE_URL');
if (values.profile !== undefined) await mkdir(values.profile, { recursive: true });

// The servers end too, which ends the run with an error and leaves time to clean up.
process.on('SIGINT', () => {});

const [what, ...names] = positionals;
if (what === 'mapped') {
  const { measureMapped, MAPPED } = await import('./mapped.ts');
  if (url === undefined) throw new Error('mapped needs DATABASE_URL');
  const chosen = names.length > 0 ? choices('mapped', names.join(), Object.keys(MAPPED)) : Object.keys(MAPPED);
  console.log(`${machine()}; one request at a time, each subject ${seconds} s for each verb, in turns\n`);
  const options = { url, names: chosen, memories: positive('memories', values.memories), seconds };
  for await (const part of measureMapped(options)) console.log(part);
  process.exit();
}
if (what !== undefined) {
  const { COLLECTIONS, measureCollections } = await import('./collections.ts');
  choices('', what, ['collections']);
  const chosen = names.length > 0 ? choices('collections', names.join(), COLLECTIONS) : COLLECTIONS;
  const [memories, users] = [positive('memories', values.memories), positive('users', values.users)];
  console.log(`${machine()}; one request at a time, each subject ${seconds} s for each verb, in turns\n`);
  for await (const part of measureCollections({ names: chosen, memories, users, seconds })) console.log(part);
  process.exit();
}
console.log(`${machine()}; ${CONNECTIONS} connections, medians of ${rounds} rounds of ${seconds} s\n`);
const verbs = VERBS.filter((verb) => only.includes(verb));
for (const engine of verbs.length > 0 ? engines : []) {
  const result = await measureEngine({
    url: engine === 'server' ? url : undefined,
    verbs,
    profile: values.profile,
    connections: CONNECTIONS,
    rounds,
    seconds,
  });
  console.log(`${engineTable(engine === 'server' ? 'PostgreSQL server' : 'Embedded Postgres', result)}\n`);
}
if (only.includes('default')) {
  const work = await measureDefault({ connections: CLIENTS, seconds: seconds * rounds });
  console.log(`${defaultTable(work, CLIENTS)}\n`);
}
if (only.includes('batch')) {
  const results: BatchResult[] = [];
  for (const engine of engines) results.push(...(await measureBatches(engine === 'server' ? url : undefined, rounds)));
  console.log(`${batchTable(results)}\n`);
}
if (only.includes('console')) console.log(consoleTable(await measureConsole(url)));

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0`);
  return value;
}

function choices(name: string, text: string, allowed: readonly string[]): string[] {
  const chosen = text.split(',');
  const wrong = chosen.find((choice) => !allowed.includes(choice));
  if (wrong !== undefined) throw new Error(`--${name}: "${wrong}" is none of ${allowed.join(', ')}`);
  return chosen;
}
