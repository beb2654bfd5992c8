import { randomInt } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Embedder } from '#contract';
import { toUnitHalf } from '#ranking';
import { runReembed } from '../../src/cli/reembed.ts';
import { embeddingsServer, sendJson } from '../embedding/embeddings-server.ts';
import {
  addMemories,
  answersOf,
  embedderOf,
  expectedAnswers,
  memoriesUpTo,
  type ServerSubject,
  serverSubject,
} from '../postgres/reembed-subject.ts';
import { call } from '../postgres/store.ts';
import { commandHere } from '../support/command.ts';
import { expectError } from '../support/expect-error.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { runProgram, startGateway, startProgram, temporaryFolder } from './gateway.ts';

const COUNT = 150;
const DIMENSIONS: Readonly<Record<string, number>> = { old: 64, new: 96 };

/** The embedder through the service: rounded here and by the gateway. */
const through = (model: string): Embedder => {
  const inner = embedderOf(model, DIMENSIONS[model]);
  return { ...inner, embed: async (...all) => (await inner.embed(...all)).map(toUnitHalf) };
};

/** An embedding service with both models; calls `asked` at every request for the new one. */
async function service(asked: (requests: number) => void = () => {}) {
  const server = await embeddingsServer();
  onTestFinished(() => server.close());
  let requests = 0;
  server.answer = ({ model, input }, response) => {
    if (model === 'new') asked(++requests);
    void embedderOf(model, DIMENSIONS[model])
      .embed(input, 'query', call)
      .then((vectors) => {
        const data = vectors.map((vector, index) => {
          const embedding = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
          return { object: 'embedding', index, embedding };
        });
        sendJson(response, 200, { object: 'list', model, data, usage: { prompt_tokens: 1, total_tokens: 1 } });
      });
  };
  const envOf = (model: string) => ({
    OMP_EMBEDDER: 'openai',
    OMP_EMBEDDING_MODEL: model,
    OPENAI_BASE_URL: server.base_url,
    OPENAI_API_KEY: 'sk-test',
    OMP_SEARCH_MODE: 'hybrid',
  });
  return { envOf };
}

const storedIn = ({ sql, names }: ServerSubject) =>
  sql<{ user_id: string; content: string }>(`select user_id, content from ${names.memories}`);

describe('on a server', () => {
  it('killed repeatedly while a gateway serves and writes, it ends with the same store as a fresh one', async ({
    skip,
  }) => {
    skip(SERVER_URL === '', NO_SERVER);
    let kill = (_requests: number) => {};
    const { envOf } = await service((requests) => kill(requests));
    const subject = await serverSubject();
    const first = await subject.open(through('old'));
    await addMemories(first, 0, COUNT);
    await first.close();
    const at = { DATABASE_URL: subject.url };
    const gateway = await startGateway({ env: { ...at, ...envOf('old') } });
    const args = ['reembed', '--batch', '10'];
    const env = { ...at, ...envOf('new') };

    let added = COUNT;
    for (let round = 0; round < 4; round++) {
      const run = startProgram({ args, env });
      // The first request only asks whether the service works.
      const base = randomInt(1, 6);
      let seen = 0;
      kill = () => {
        if (++seen === base) setTimeout(() => run.child.kill('SIGKILL'), randomInt(0, 30));
      };
      for (const [i, { user_id, content }] of memoriesUpTo(added + 3).entries()) {
        if (i >= added) await gateway.client.add({ user_id, content });
      }
      added += 3;
      expect((await run.ended).signal).toBe('SIGKILL');
      kill = () => {};
    }
    const { status, stdout, stderr } = await runProgram({ args: [...args, '--json'], env });
    expect(status, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ to: { model: 'new', dimensions: 96 }, total: added, switched: true });
    expect(stderr).toMatch(/of 162 memories \(\d+ %\)/);
    expectError(await gateway.client.tell('POST', '/memories', { user_id: 'ana', content: 'late' }), 'provider_error');
    expect((await gateway.stop()).status).toBe(0);

    const fresh = await subject.open(through('new'));
    expect(await storedIn(subject)).toHaveLength(added);
    expect(await answersOf(fresh)).toEqual(await expectedAnswers(through('new'), memoriesUpTo(added)));
  });

  it('stops at SIGTERM after the current batch with status 1, and the next run continues', async ({ skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    let stop = () => {};
    const { envOf } = await service((requests) => requests === 3 && stop());
    const subject = await serverSubject();
    const first = await subject.open(through('old'));
    await addMemories(first, 0, COUNT);
    await first.close();
    const env = { DATABASE_URL: subject.url, ...envOf('new') };
    const run = startProgram({ args: ['reembed', '--batch', '10'], env });
    stop = () => void run.child.kill('SIGTERM');
    const stopped = await run.ended;
    expect(stopped).toMatchObject({ status: 1, signal: null });
    expect(stopped.stdout).toMatch(/^Stopped: \d+ of 150 memories embedded with "new".*again to continue/s);
    const dry = await runProgram({ args: ['reembed', '--dry-run'], env });
    expect(dry).toMatchObject({ status: 0 });
    expect(dry.stdout).toMatch(
      /"old" \(64 dimensions\).*"new" \(96 dimensions\).*of 150 memories.*Nothing was changed/s,
    );
    const done = await runProgram({ args: ['reembed'], env });
    expect(done).toMatchObject({ status: 0 });
    expect(done.stdout).toMatch(/^Done: 150 memories with vectors of "new"/);
    const again = await runProgram({ args: ['reembed'], env });
    expect(again).toMatchObject({ status: 0, stdout: expect.stringContaining('nothing to do') });
  });
});

describe('in a data folder', () => {
  it('killed and run again, it ends with what a gateway with the new embedder serves', async () => {
    let kill = () => {};
    const { envOf } = await service((requests) => requests === 4 && kill());
    const folder = { OMP_DATA_DIR: temporaryFolder() };
    const gateway = await startGateway({ env: { ...folder, ...envOf('old') } });
    for (const memory of memoriesUpTo(40)) await gateway.client.add(memory);
    const env = { ...folder, ...envOf('new') };
    const taken = await runProgram({ args: ['reembed'], env });
    expect(taken).toMatchObject({ status: 1, stdout: '' });
    expect(taken.stderr).toContain('in use by another omp-gateway');
    await gateway.stop();

    const run = startProgram({ args: ['reembed', '--batch', '5'], env });
    kill = () => void run.child.kill('SIGKILL');
    expect((await run.ended).signal).toBe('SIGKILL');
    const done = await runProgram({ args: ['reembed', '--batch', '5'], env });
    expect(done, done.stderr).toMatchObject({ status: 0 });
    const { client } = await startGateway({ env });
    const hits = await client.search({ user_id: 'ana', q: 'apple bridge', limit: 100 });
    const found = hits.map(({ memory, score }) => ({
      score,
      content: memory.content,
      model: memory.embedding_model,
    }));
    found.sort((a, b) => b.score - a.score || (a.content < b.content ? -1 : 1));
    expect(found).toEqual((await expectedAnswers(through('new'), memoriesUpTo(40)))[0]);
  });
});

it.each<[Record<string, string>, RegExp]>([
  [{ OMP_PROVIDER: 'memory' }, /memory cannot embed its memories again/],
  [{ OMP_SEARCH_MODE: 'keyword' }, /OMP_SEARCH_MODE/],
])('ends with status 1: %j', async (env, message) => {
  const ending = await commandHere((terminal) => runReembed([], terminal), env);
  expect(ending).toEqual({ status: 1, stdout: '', stderr: expect.stringMatching(message) });
});
