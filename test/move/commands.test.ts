import { existsSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { embeddingsServer } from '../embedding/embeddings-server.ts';
import { startPinecone } from '../pinecone-server/start.ts';
import {
  dataFolder,
  type Ending,
  type RunningGateway,
  runProgram,
  serveHere,
  startProgram,
  temporaryFolder,
} from '../process/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { FULL } from '../support/full.ts';
import { runHere } from './run.ts';
import { serverForSchema } from './schema.ts';

/** Memories on the long way, and how often each of its commands is killed. */
const [MEMORIES, KILLS] = FULL ? [100_000, 4] : [600, 1];

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});
/** Fails with what the command printed unless it ends with this status. */
async function expectEnd(args: readonly string[], env: Record<string, string> = {}, status = 0) {
  const own = { OMP_SEARCH_MODE: 'keyword', ...env };
  // A file on standard output is not written through the terminal.
  const here = Object.keys(env).length === 0 && !args.includes('-') && args[0] !== 'person';
  const ended = await (here ? runHere(args) : runProgram({ args, env: own }));
  expect(ended.status, `${args.join(' ')}\n${ended.stdout}${ended.stderr}`).toBe(status);
  return ended;
}

const texts = ['likes tea ☕', 'lives in "Łódź"', 'line one\nline two', 'שלום', 'works at night'];
const memoryOf = (n: number) => ({
  user_id: `user ${n % 13}`,
  content: `${texts[n % texts.length]} ${n}`,
  ...(n % 3 > 0 && { scope: `work/${n % 4}`, tags: [`t${n % 5}`, 'omp:x'] }),
  ...(n % 7 === 0 && { valid_to: '2030-01-01T00:00:00.000Z', confidence: 0.5, 'x-n': { n, of: [null, 'a'] } }),
  ...(n % 11 === 0 && { source: { app: 'test', type: 'imported' }, supersedes: [`mem_${n}`] }),
});
async function fill({ client }: Pick<RunningGateway, 'client'>, count: number) {
  for (let at = 0; at < count; at += 100) {
    await client.batch(Array.from({ length: Math.min(100, count - at) }, (_, i) => memoryOf(at + i)));
  }
}

describe('export and import', () => {
  it('keep what is in a file, whatever stands in it, and the file says when it was cut', async () => {
    const source = await serveHere();
    const target = await serveHere();
    await fill(source, 30);
    const file = join(folder, 'all.ndjson');
    await expectEnd(['export', file, '--from', source.url]);
    const { stdout } = await expectEnd(['export', '-', '--from', source.url]);
    expect(stdout.split('\n').slice(1, -2)).toEqual(readFileSync(file, 'utf8').split('\n').slice(1, -2));
    expect((await expectEnd(['export', file, '--from', source.url], {}, 1)).stderr).toContain('--restart');
    expect((await expectEnd(['import', file, '--to', target.url, '--dry-run'])).stdout).toBe(
      '30 memories would be stored.\n',
    );
    const cut = join(folder, 'cut.ndjson');
    writeFileSync(cut, readFileSync(file).subarray(0, -100));
    expect((await expectEnd(['import', cut, '--to', target.url], {}, 1)).stderr).toContain('cut or changed');
    expect((await target.client.list({ user_id: 'user 0' })).items).toEqual([]);
    expect((await expectEnd(['import', file, '--to', target.url])).stdout).toBe('30 memories stored.\n');
    expect((await expectEnd(['import', file, '--to', target.url])).stdout).toBe(
      '0 memories stored, 30 there already.\n',
    );
    await expectEnd(['verify', source.url, target.url]);
    await expectEnd(['verify', file, target.url]);
  });

  it('take what the filters leave, and do with conflicts what was asked for', async () => {
    const source = await serveHere();
    const target = await serveHere();
    await fill(source, 60);
    const file = join(folder, 'some.ndjson.gz');
    const filters = ['--user', 'user 1', '--user', 'user 2', '--scope', 'work/*', '--tag', 'omp:x'];
    await expectEnd(['export', file, '--from', source.url, ...filters]);
    const lines = gunzipSync(readFileSync(file)).toString().trim().split('\n').slice(1, -1);
    const wanted = Array.from({ length: 60 }, (_, n) => n).filter((n) => [1, 2].includes(n % 13) && n % 3 > 0);
    expect(lines.map((line) => JSON.parse(line).content).sort()).toEqual(wanted.map((n) => memoryOf(n).content).sort());
    await expectEnd(['import', file, '--to', target.url]);
    const fewer = await expectEnd(['import', file, '--to', target.url, '--dry-run', '--user', 'user 1']);
    const left = lines.filter((line) => JSON.parse(line).user_id === 'user 2').length;
    expect(fewer.stderr).toContain(`The filters leave out ${left} memor`);
    const { id } = JSON.parse(lines[0] as string);
    await target.client.update(id, { content: 'changed here' });
    const conflict = (how: string, status?: number) =>
      expectEnd(['import', file, '--to', target.url, '--on-conflict', how, '--restart'], {}, status);
    expect((await conflict('skip')).stdout).toMatch(/^0 memories stored, \d there already, 1 skipped/);
    expect((await conflict('fail', 1)).stderr).toContain(id);
    expect((await target.client.get(id)).content).toBe('changed here');
    const differing = await expectEnd(['verify', file, target.url, '--json'], {}, 1);
    expect(JSON.parse(differing.stdout).differences).toEqual([
      expect.objectContaining({ id, fields: ['content', 'updated_at'] }),
    ]);
    expect((await conflict('replace')).stdout).toMatch(/^1 memory stored, \d there already/);
    await expectEnd(['verify', file, target.url]);
  });

  it('leave out damaged rows of a CSV file if asked to, and name them and every other row as before', async () => {
    const { url, client } = await serveHere();
    const file = join(folder, 'ragged.csv');
    writeFileSync(file, 'content,tags\nlikes tea,a\nlives, in Oslo,b\ncut\n,blank\nlikes cake,b\n');
    const args = ['import', file, '--format', 'csv', '--user', 'ana', '--to', url];
    expect((await expectEnd(args, {}, 1)).stderr).toContain('row 3 has 3 cells, and the first row 2');
    expect((await client.list({ user_id: 'ana' })).items).toEqual([]);
    const counted = await expectEnd([...args, '--skip-damaged', '--dry-run']);
    expect([counted.stdout, counted.stderr]).toEqual([
      '3 memories would be stored.\n',
      expect.stringContaining('rows, which are no memories: 2.'),
    ]);
    const { stdout, stderr } = await expectEnd([...args, '--skip-damaged'], {}, 1);
    expect(stdout).toBe('2 memories stored.\n');
    for (const place of ['(row 3): has 3 cells', '(row 4): has 1 cells', '(row 5): ']) expect(stderr).toContain(place);
    const { items } = await client.list({ user_id: 'ana' });
    expect(items.map(({ content }) => content).sort()).toEqual(['likes cake', 'likes tea']);
    expect((await expectEnd(['import', file, '--skip-damaged'], {}, 2)).stderr).toContain('without --format csv');
  });

  it('read files of other applications', async () => {
    const target = await serveHere();
    const csv = join(folder, 'notes.csv');
    writeFileSync(csv, 'text,tags,date\n"likes tea, green",a,2024-05-01 10:00:00+02\nlives in Oslo,,\n');
    const args = ['import', csv, '--format', 'csv', '--user', 'ana', '--to', target.url];
    const columns = ['--column', 'content=text', '--column', 'created_at=date'];
    expect((await expectEnd([...args, ...columns])).stdout).toBe('2 memories stored.\n');
    expect((await expectEnd([...args, ...columns])).stdout).toBe('0 memories stored, 2 there already.\n');
    expect((await expectEnd(args, {}, 1)).stderr).toContain('--column content=COLUMN');
    const { items } = await target.client.list({ user_id: 'ana' });
    expect(items.at(-1)).toMatchObject({
      ...{ content: 'likes tea, green', tags: ['a'], created_at: '2024-05-01T08:00:00.000Z' },
    });
    const mem0 = join(folder, 'get_all.json');
    const memory = { id: '1', memory: 'works at night', user_id: 'ben', created_at: '2025-01-01T00:00:00Z' };
    // The same memory may come by its user and by its agent.
    writeFileSync(mem0, JSON.stringify({ results: [memory, memory] }));
    const read = await expectEnd(['import', mem0, '--format', 'mem0', '--to', target.url, '--concurrency', '1']);
    expect(read.stdout).toBe('1 memory stored, 1 there already.\n');
    expect((await target.client.list({ user_id: 'ben' })).items).toMatchObject([{ id: '1', content: memory.memory }]);
  });

  it('go on only with the same file and options', async () => {
    const target = await serveHere();
    const file = join(folder, 'notes.csv');
    const rows = Array.from({ length: 600 }, (_, n) => `note ${n},2024-05-01,${n < 550 ? `id-${n}` : 'id-0'}\n`);
    writeFileSync(file, `content,created_at,id\n${rows.join('')}`);
    const args = ['import', file, '--format', 'csv', '--user', 'ana', '--to', target.url];
    const failing = [...args, '--on-conflict', 'fail'];
    // The first page is stored, the second has a conflict.
    expect((await expectEnd(failing, {}, 1)).stderr).toContain('"id-0" (row 552) is stored already');
    expect((await expectEnd([...failing, '--dry-run'])).stdout).toBe('600 memories would be stored.\n');
    expect((await expectEnd(args, {}, 1)).stderr).toContain('start over with --restart');
    utimesSync(file, 0, 0);
    expect((await expectEnd(failing, {}, 1)).stderr).toContain('start over with --restart');
    await expectEnd([...args, '--restart']);
  });

  it('[Decision 43] say when they are stopped how far they came, and go on with the same command', async () => {
    const target = await serveHere();
    const file = join(folder, 'notes.csv');
    const rows = Array.from({ length: 200 }, (_, n) => `note ${n},2024-05-01,id-${n}\n`);
    writeFileSync(file, `content,created_at,id\n${rows.join('')}`);
    const args = ['import', file, '--format', 'csv', '--user', 'ana', '--to', target.url];
    const paced = startProgram({ args: [...args, '--per-minute', '1'] });
    await eventually(async () => expect((await target.client.list({ user_id: 'ana' })).items).toHaveLength(1));
    paced.child.kill('SIGINT');
    const { status, stderr, stdout } = await paced.ended;
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(
      /omp-gateway: stopped: 1 memory stored; the same command goes on at row [23], and stores nothing twice\n$/,
    );
    expect(stderr).toContain('1 of 200 memories (0 %), at most 1 a minute');
    expect((await expectEnd(args)).stdout).toMatch(/^199 memories stored/);
  });

  it('[Decision 43] stop while they wait for standard input, and between the rows of a file', async () => {
    const target = await serveHere();
    const args = ['import', '-', '--format', 'csv', '--user', 'ana', '--to', target.url];
    const program = startProgram({ args, stdin: 'pipe' });
    program.child.stdin?.on('error', () => {});
    program.child.stdin?.write(`content\n${'tea\n'.repeat(600)}`);
    await eventually(async () => expect((await target.client.list({ user_id: 'ana' })).items).not.toEqual([]));
    program.child.kill('SIGTERM');
    const { status, stderr } = await program.ended;
    expect(status).toBe(1);
    expect(stderr).toMatch(/stopped: [1-5]00 memories stored; the same input is not stored twice\n$/);
  });

  it('[Decision 43] show no name as it is that a terminal would interpret', async () => {
    const gateway = await serveHere();
    const evil = (n: number) => `${n}\u001b[2J\u009b31m\u202e\r\nNo memory differs.`;
    const memories = [1, 2].map((n) => ({
      ...{ id: evil(n), user_id: evil(n), content: 'tea', created_at: '2025-01-01T00:00:00.000Z' },
    }));
    expect((await gateway.client.tell('POST', '/import', { memories })).status).toBe(200);
    const file = join(folder, 'all.ndjson');
    await expectEnd(['export', file, '--from', gateway.url]);
    await gateway.client.tell('POST', '/import', {
      memories: memories.slice(0, 1).map((one) => ({ ...one, content: 'coffee' })),
      on_conflict: 'replace',
    });
    const rejected = join(folder, 'rejected.csv');
    writeFileSync(rejected, `content,id,confidence\ntea,"${evil(3)}",7\n`);
    const csv = ['import', rejected, '--format', 'csv', '--user', 'ana', '--to', gateway.url];
    const ends = [
      await expectEnd(['verify', file, gateway.url], {}, 1),
      await expectEnd(['verify', file, gateway.url, '--json'], {}, 1),
      await expectEnd(['import', file, '--to', gateway.url, '--on-conflict', 'fail'], {}, 1),
      await expectEnd(csv, {}, 1),
      await expectEnd(['export', '-', '--from', gateway.url]),
    ];
    for (const { stdout, stderr } of ends) {
      expect(stdout + stderr).not.toMatch(/[^\n\P{Cc}]|\p{Bidi_Control}/u);
      expect((stdout + stderr).split('\n')).not.toContain('No memory differs.');
    }
    const [verified, asJson, failed, importing] = ends as [Ending, Ending, Ending, Ending];
    expect(JSON.parse(asJson.stdout).differences).toMatchObject([{ id: evil(1), user_id: evil(1) }]);
    const shown = '1\\u001b[2J\\u009b31m\\u202e\\u000d\\u000aNo memory differs.';
    expect(verified.stdout).toContain(`${shown} of ${shown}: differs in content`);
    expect(failed.stderr).toMatch(/the memory "1\\u001b\[2J.*" \(line \d\) is stored already/);
    expect(importing.stderr).toMatch(/rejected 3\\u001b.* \(row 2\): confidence/);
  });

  it('end without a message when the reader of the pipe has ended', async () => {
    const source = await serveHere();
    const program = startProgram({ args: ['export', '-', '--from', source.url] });
    program.child.stdout?.destroy();
    expect(await program.ended).toMatchObject({ status: 1, stderr: '' });
  });
});

it('a store is migrated while it is written, and verify names what was deleted', async () => {
  const source = await serveHere();
  const target = await serveHere();
  await fill(source, 40);
  const saved = join(folder, 'place.json');
  const migrate = () => expectEnd(['migrate', '--from', source.url, '--to', target.url, '--progress', saved]);
  expect((await migrate()).stdout).toMatch(/^40 memories stored/);
  const [first, second] = (await source.client.list({ user_id: 'user 1' })).items;
  await source.client.update(first?.id ?? '', { content: 'changed meanwhile' });
  await source.client.remove(second?.id ?? '');
  await source.client.add({ user_id: 'user 1', content: 'new' });
  expect((await migrate()).stdout).toMatch(/^2 memories stored/);
  const { stdout } = await expectEnd(['verify', source.url, target.url], {}, 1);
  expect(stdout).toContain(`${second?.id} of user 1: missing in ${source.url}`);
  expect(stdout).toContain('Different: 1 memory.');
});

it('what the target of a migration rejects is named, and comes again in the next run', async () => {
  const source = await serveHere();
  const target = await serveHere({ OMP_MAX_REQUEST_BYTES: '20000' });
  const id = 'mem_long';
  // Older than the margin by which a pass begins before the one before it.
  const created_at = '2025-01-01T00:00:00.000Z';
  const long = { id, user_id: 'ana', content: 'x'.repeat(30_000), created_at };
  expect((await source.client.tell('POST', '/import', { memories: [long] })).status).toBe(200);
  await source.client.add({ user_id: 'ana', content: 'likes tea' });
  const saved = join(folder, 'place.json');
  const args = ['migrate', '--from', source.url, '--to', target.url, '--progress', saved];
  for (const _ of [1, 2]) {
    const ended = await runHere(args);
    expect(ended.status).toBe(1);
    expect(ended.stderr).not.toContain('Nothing changed');
    expect(ended.stderr).toContain(`rejected ${id}: `);
  }
  expect((await target.client.list({ user_id: 'ana' })).items.map(({ content }) => content)).toEqual(['likes tea']);
});

it(`${MEMORIES} memories go memory, file, embedded, file, server, Pinecone and back, whatever is killed on the way`, async () => {
  const source = await serveHere();
  await fill(source, MEMORIES);
  // The vectors are no part of this: they are taken over in the conformance suite.
  const embeddings = await embeddingsServer();
  const pinecone = await startPinecone({ dimension: 8 });
  const server = await serverForSchema();
  const embedded = { OMP_DATA_DIR: await dataFolder() };
  const places: [name: string, env: Record<string, string>][] = [
    ['embedded', embedded],
    ...(server ? [['server', server] as [string, Record<string, string>]] : []),
    [
      'Pinecone',
      {
        ...{ OMP_PROVIDER: 'pinecone', PINECONE_API_KEY: 'test', PINECONE_INDEX_HOST: pinecone.url },
        ...{ OMP_SEARCH_MODE: 'vector', OMP_EMBEDDER: 'openai', OPENAI_BASE_URL: embeddings.base_url },
      },
    ],
    ...(FULL ? [['embedded again', { OMP_DATA_DIR: await dataFolder() }] as [string, Record<string, string>]] : []),
  ];
  try {
    let file = join(folder, '0.ndjson.gz');
    await killedOften(['export', file, '--from', source.url], {}, `${file}.progress`);
    for (const [i, [name, env]] of places.entries()) {
      await killedOften(['import', file], env, `${file}.progress`);
      const verified = await expectEnd(['verify', file, 'config'], env);
      expect(verified.stdout, name).toContain('No memory differs.');
      file = join(folder, `${i + 1}.ndjson.gz`);
      await killedOften(['export', file], env, `${file}.progress`);
    }
    await expectEnd(['verify', source.url, file]);
  } finally {
    await pinecone.close();
    await embeddings.close();
  }
});

/** Runs a command to its end, killing it each time after it has saved its place a little further on. */
async function killedOften(args: readonly string[], env: Record<string, string>, saved: string) {
  const started = performance.now();
  let peak = 0;
  for (let kills = 0; ; kills++) {
    const program = startProgram({ args, env: { OMP_SEARCH_MODE: 'keyword', ...env } });
    const before = changedAt(saved);
    let ended = false;
    void program.ended.then(() => {
      ended = true;
    });
    while (!ended && (kills >= KILLS || changedAt(saved) === before)) {
      peak = Math.max(peak, residentKb(program.child.pid));
      await sleep(20);
    }
    // In the middle of whatever comes next.
    if (!ended) await sleep((kills * 37) % 50);
    program.child.kill('SIGKILL');
    const { status, stdout, stderr } = await program.ended;
    // It may be killed when all is done, and only the end of the process is left.
    const isDone = args[0] === 'export' && existsSync(String(args[1]));
    if (status === null && !isDone) continue;
    expect(status ?? 0, `${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
    const seconds = (performance.now() - started) / 1_000;
    if (FULL) {
      const rate = Math.round(MEMORIES / seconds);
      console.log(
        `${args[0]} ${env.OMP_PROVIDER ?? 'postgres'}: ${kills} kills, ${rate} memories/s, ${Math.round(peak / 1024)} MB`,
      );
    }
    return;
  }
}

const changedAt = (path: string): number => (existsSync(path) ? statSync(path).mtimeMs : 0);

/** Highest resident memory of a process so far; 0: it has ended. */
function residentKb(pid: number | undefined): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

describe('person export', () => {
  it('[Decision 61] writes what is stored of a user to a file that only its user may read, and says what is missing', async () => {
    const postgres = { url: 'postgres://omp@127.0.0.1:1/omp' };
    const crm = { mount: 'crm', required: false, search: { mode: 'keyword' }, postgres };
    const { client, url } = await serveHere();
    await fill({ client }, 30);
    const user = 'user 3';
    const { items } = await client.list({ user_id: user });
    const file = join(folder, 'person.jsonl');
    const args = ['person', 'export', user, '--from', url];
    const done = JSON.parse((await expectEnd([...args, '--out', file, '--json'])).stdout);
    expect(done).toMatchObject({ memories: items.length, complete: true, file });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}.part`)).toBe(false);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    const memories = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'memory');
    expect(memories.map(({ id }) => id).sort()).toEqual(items.map(({ id }) => id).sort());
    expect((await expectEnd([...args, '--out', file], {}, 1)).stderr).toContain('--replace');
    await expectEnd([...args, '--out', file, '--replace']);
    await expectEnd([...args, '--out', `${file}.gz`]);
    const packed = gunzipSync(readFileSync(`${file}.gz`))
      .toString()
      .split('\n');
    expect(packed.slice(1, 1 + items.length)).toEqual(lines.slice(1, 1 + items.length));
    const { stdout, stderr } = await expectEnd(args);
    expect(stdout.split('\n').slice(1, 1 + items.length)).toEqual(lines.slice(1, 1 + items.length));
    expect(stderr).toContain(`Done: ${items.length} memories`);

    const env = { OMP_PROVIDER: 'memory', OMP_STORES: JSON.stringify({ crm }) };
    const partial = await serveHere(env);
    const ended = await expectEnd(['person', 'export', user, '--from', partial.url], {}, 1);
    expect(ended.stderr).toContain('missing: memories of the store crm');
    expect(JSON.parse(ended.stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ type: 'end', complete: false });
  });
});

describe('person erase', () => {
  it('[Decision 62] prints the receipt, as a line that restore reads too, and fails while something may be left', async () => {
    const { client, url } = await serveHere();
    await fill({ client }, 30);
    const user = 'user 3\u001b[31m';
    const { id } = await client.add({ user_id: user, content: 'tea' });
    await client.update(id, { content: 'coffee' });
    const others = (await client.list({ user_id: 'user 3' })).items;
    const { stdout } = await expectEnd(['person', 'erase', user, '--from', url]);
    expect(stdout).toContain('memory: removed 1 memories, ');
    expect(stdout).toContain(' 1 versions, ');
    expect(stdout).toContain('; left nothing (counted)\n');
    expect(stdout).toMatch(/^kept: \d+ audit entries: they name/m);
    expect(stdout).toMatch(/^kept: backups: out of reach/m);
    expect(stdout).toMatch(/^Done: nothing else of user 3\\u001b\[31m is left, read back at \S+\.$/m);
    expect((await client.list({ user_id: user })).items).toEqual([]);
    expect((await client.list({ user_id: 'user 3' })).items).toEqual(others);
    const again = (await expectEnd(['person', 'erase', user, '--from', url, '--json'])).stdout;
    expect(again.match(/\n/g)).toHaveLength(1);
    expect(JSON.parse(again)).toMatchObject({ deleted: 0, receipt: { user_id: user, complete: true } });

    const postgres = { url: 'postgres://omp@127.0.0.1:1/omp' };
    const crm = { mount: 'crm', required: false, search: { mode: 'keyword' }, postgres };
    const env = { OMP_PROVIDER: 'memory', OMP_SEARCH_MODE: 'keyword', OMP_STORES: JSON.stringify({ crm }) };
    const partial = await serveHere(env);
    const ended = await expectEnd(['person', 'erase', 'ana', '--from', partial.url], {}, 1);
    expect(ended.stdout).toContain('crm: removed nothing; left unknown (failed)\n');
    expect(ended.stdout).toContain('Not all: something of ana may be left; the same command goes on.\n');
  });
});

describe('rollback', () => {
  it('[Decision 56] prints what it does with each memory, changes nothing in a dry run, and goes on when it is repeated', async () => {
    const { client, url } = await serveHere();
    const kept = await client.add({ user_id: 'ana', content: 'true' });
    const changed = await client.add({ user_id: 'ana', content: 'right' });
    await sleep(5);
    const since = new Date().toISOString();
    await sleep(5);
    await client.update(changed.id, { content: 'wrong\n\u001b[31m' });
    const added = await client.add({ user_id: 'ana', content: 'x'.repeat(100) });
    const args = ['rollback', 'ana', '--since', since, '--key', '', '--to', url];
    const rows = [`restore  ${changed.id}  version 1: wrong \\u001b[31m`, `delete   ${added.id}  ${'x'.repeat(60)}…`];
    const before = (await client.list({ user_id: 'ana' })).items;
    expect((await expectEnd([...args, '--dry-run'])).stdout.split('\n').sort()).toEqual(
      [...rows, 'Dry run: 1 to delete, 1 to restore, 0 kept; 0 had been deleted.', ''].sort(),
    );
    expect((await client.list({ user_id: 'ana' })).items).toEqual(before);
    expect((await expectEnd(args)).stdout).toContain('Done: 1 deleted, 1 restored, 0 kept; 0 had been deleted.');
    const { items } = await client.list({ user_id: 'ana' });
    expect(items.map(({ content }) => content).sort()).toEqual(['right', 'true']);
    expect(items.find(({ id }) => id === kept.id)).toEqual(kept);
    const { items: again, ...counts } = JSON.parse((await expectEnd([...args, '--json'])).stdout);
    const lacking = { 'x-partial': [], 'x-without': [] };
    expect(counts).toEqual({
      dry_run: false,
      delete: 0,
      restore: 0,
      keep: 1,
      deleted: 1,
      deletes_known: true,
      ...lacking,
    });
    expect(again).toMatchObject([
      { id: changed.id, action: 'keep', reason: 'rolled_back' },
      { id: added.id, action: 'deleted' },
    ]);
  });

  it('[Decision 56] says which stores it lacks, with exit status 1, and that no audit log names deletes', async () => {
    const postgres = { url: 'postgres://omp@127.0.0.1:1/omp' };
    const crm = { mount: 'crm', required: false, search: { mode: 'keyword' }, postgres };
    const env = {
      OMP_PROVIDER: 'memory',
      OMP_SEARCH_MODE: 'keyword',
      OMP_AUDIT: 'off',
      OMP_STORES: JSON.stringify({ crm }),
    };
    const { client, url } = await serveHere(env);
    await client.add({ user_id: 'ana', content: 'x' });
    const args = ['rollback', 'ana', '--since', '2001-01-01', '--to', url];
    expect((await expectEnd(args, {}, 1)).stdout).toContain(
      'Not all: 1 deleted, 0 restored, 0 kept; without an audit log it is not known what had been deleted. Nothing of crm, which does not answer',
    );
    const outcome = JSON.parse((await expectEnd([...args, '--json'], {}, 1)).stdout);
    expect(outcome).toMatchObject({ deletes_known: false, 'x-partial': ['crm'], 'x-without': [] });
  });
});
