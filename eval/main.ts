/**
 * Quality of search on the set in `eval/data` or on another one:
 *   npm run eval [-- --dataset DIR | --locomo FILE]
 * Runs on memory, on the embedded Postgres and, if DATABASE_URL is set, on that server (in schemas of its own, dropped
 * afterwards). Exit status 1 when hybrid search does not beat both of its parts or when the backends disagree.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Call, type Log } from '#contract';
import { openEmbedder } from '../src/embedding/open.ts';
import { type Answer, askAll } from './ask.ts';
import { type Backend, type Mode, openBackends } from './backends.ts';
import { type Dataset, readDataset } from './dataset.ts';
import { fromLocomo } from './locomo.ts';
import { embedAll, memoised } from './memo.ts';
import { type Run, report } from './report.ts';

const call = new Call('eval');

const log: Log = {
  info() {},
  warn: (fields, message) => console.error(message, fields),
  error: (fields, message) => console.error(message, fields),
};

const { values } = parseArgs({ options: { dataset: { type: 'string' }, locomo: { type: 'string' } } });
if (values.dataset !== undefined && values.locomo !== undefined)
  throw new Error('Give --dataset or --locomo, not both.');
const dataset = await read(values.dataset, values.locomo);
const users = new Set(dataset.facts.map(({ user }) => user));
console.log(`${dataset.facts.length} facts of ${users.size} users, ${dataset.questions.length} questions\n`);

const local = await openEmbedder({ kind: 'local', cache_size: 0, workers: 1 }, log);
const embedder = memoised(local);
const backends = await openBackends(embedder, log, process.env.DATABASE_URL);
try {
  const texts = [...dataset.facts.map(({ content }) => content), ...dataset.questions.map(({ question }) => question)];
  await embedAll(embedder, texts, call);
  const runs: Run[] = [];
  for (const backend of backends) {
    const vector = await answersOf(backend, 'vector');
    const keyword = await answersOf(backend, 'keyword');
    runs.push({ label: backend.label, answers: { vector, keyword, hybrid: await answersOf(backend, 'hybrid') } });
  }
  const { text, passed } = report(dataset.questions, runs);
  console.log(text);
  if (!passed) process.exitCode = 1;
} finally {
  await Promise.allSettled([...backends.map((backend) => backend.remove()), local.close()]);
}

async function read(directory: string | undefined, locomo: string | undefined): Promise<Dataset> {
  if (locomo !== undefined) return fromLocomo(JSON.parse(await readFile(locomo, 'utf8')));
  return readDataset(directory ?? fileURLToPath(new URL('data', import.meta.url)));
}

async function answersOf(backend: Backend, mode: Mode): Promise<Answer[]> {
  const provider = await backend.open(mode);
  try {
    return await askAll(provider, dataset, call);
  } finally {
    await provider.close();
  }
}
