/**
 * Quality of search on the set in `eval/data` or on another one:
 *   npm run eval [-- --dataset DIR | --locomo FILE] [--results FILE]
 * And quality of `/context` on conversations: of `eval/data`, or of the LoCoMo file. What it holds of the evidence of each question
 * goes into the file of `--results`, one JSON object a line.
 * Runs on memory, on the embedded Postgres and, if DATABASE_URL is set, on that server (in schemas of its own, dropped
 * afterwards). Exit status 1 when hybrid search does not beat both of its parts or when the backends disagree.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Call, type Log } from '#contract';
import type { Store } from '../src/core/store.ts';
import { openEmbedder } from '../src/embedding/open.ts';
import { type Answer, askAll } from './ask.ts';
import { type Backend, type Mode, openBackends } from './backends.ts';
import { askContexts, type ContextResult, contextReport, contextResults } from './contexts.ts';
import { readDataset } from './dataset.ts';
import { fromLocomo } from './locomo.ts';
import { embedAll, memoised } from './memo.ts';
import { type Run, report } from './report.ts';

const call = new Call('eval');

const log: Log = {
  info() {},
  warn: (fields, message) => console.error(message, fields),
  error: (fields, message) => console.error(message, fields),
};

const { values } = parseArgs({
  options: {
    dataset: { type: 'string' },
    locomo: { type: 'string' },
    results: { type: 'string', default: join(tmpdir(), 'omp-eval-contexts.jsonl') },
  },
});
if (values.dataset !== undefined && values.locomo !== undefined)
  throw new Error('Give --dataset or --locomo, not both.');
const data = fileURLToPath(new URL('data', import.meta.url));
const conversations = fromLocomo(JSON.parse(await readFile(values.locomo ?? join(data, 'conversations.json'), 'utf8')));
const dataset = values.locomo === undefined ? await readDataset(values.dataset ?? data) : conversations;
for (const { facts, questions } of new Set([dataset, conversations])) {
  const users = new Set(facts.map(({ user }) => user));
  console.log(`${facts.length} facts of ${users.size} users, ${questions.length} questions`);
}

const local = await openEmbedder({ kind: 'local', cache_size: 0, workers: 1 }, log);
const embedder = memoised(local);
const backends = await openBackends(embedder, log, process.env.DATABASE_URL);
try {
  const both = [dataset, conversations];
  await embedAll(
    embedder,
    both.flatMap(({ facts }) => facts.map(({ content }) => content)),
    call,
  );
  await embedAll(
    embedder,
    both.flatMap(({ questions }) => questions.map(({ question }) => question)),
    call,
  );
  const runs: Run[] = [];
  const results: ContextResult[][] = [];
  for (const backend of backends) {
    const vector = await ask(backend, 'vector');
    const keyword = await ask(backend, 'keyword');
    runs.push({ label: backend.label, answers: { vector, keyword, hybrid: await ask(backend, 'hybrid') } });
    const contexts = await using(backend, 'hybrid', 'context', (store) => askContexts(store, conversations, log, call));
    results.push(contextResults(backend.label, conversations, contexts));
  }
  const { text, passed } = report(dataset.questions, runs);
  console.log(`\n${text}\n\n${results.map(contextReport).join('\n\n')}\n`);
  await writeFile(
    values.results,
    results
      .flat()
      .map((result) => `${JSON.stringify(result)}\n`)
      .join(''),
  );
  console.log(`The contexts of each question: ${values.results}`);
  if (!passed) process.exitCode = 1;
} finally {
  await Promise.allSettled([...backends.map((backend) => backend.remove()), local.close()]);
}

function ask(backend: Backend, mode: Mode): Promise<Answer[]> {
  return using(backend, mode, mode, (store) => askAll(store, dataset, call));
}

async function using<Result>(
  backend: Backend,
  mode: Mode,
  name: string,
  work: (store: Store) => Promise<Result>,
): Promise<Result> {
  const store = await backend.open(mode, name);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
