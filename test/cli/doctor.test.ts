import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Finding } from '#contract';
import { findingsText, isColoured, runDoctor } from '../../src/cli/doctor.ts';
import { FOREIGN_SCRIPT, openEmbedder } from '../../src/embedding/open.ts';
import { embeddings, embeddingsServer, failing } from '../embedding/embeddings-server.ts';
import { call, memoryOf, openStore, type TestDatabase } from '../postgres/store.ts';
import { commandHere } from '../support/command.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { recordingLog } from '../support/subject.ts';

const doctor = (env: Readonly<Record<string, string>>, argv: readonly string[] = [], isTTY = false) =>
  commandHere((terminal) => runDoctor(argv, terminal), env, isTTY);
const json = async (env: Readonly<Record<string, string>>) => {
  const { status, stdout, stderr } = await doctor(env, ['--json']);
  expect(stderr).toBe('');
  return { status, ...(JSON.parse(stdout) as { ok: boolean; findings: Finding[] }) };
};

const MEMORY = { OMP_PROVIDER: 'memory', OMP_SEARCH_MODE: 'keyword' };

it('flags override the environment', async () => {
  const { status, stdout } = await doctor({ OMP_SEARCH_MODE: 'keyword' }, ['--provider', 'memory']);
  expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('provider memory, keyword') });
});

describe('configuration', () => {
  it('reports all mistakes, and that nothing else was checked', async () => {
    const { status, ok, findings } = await json({ OMP_PORT: 'x', OMP_LOG_LEVEL: 'loud' });
    expect({ status, ok }).toEqual({ status: 1, ok: false });
    expect(findings).toEqual([
      { area: 'configuration', level: 'problem', message: expect.stringContaining('OMP_PORT') },
      { area: 'configuration', level: 'problem', message: expect.stringContaining('OMP_LOG_LEVEL') },
      { area: 'configuration', level: 'warning', message: expect.stringContaining('nothing else was checked') },
    ]);
  });

  it('warns of an address beyond loopback without a configured key', async () => {
    const warned = async (env: Readonly<Record<string, string>>) =>
      (await json({ ...MEMORY, ...env })).findings.some(({ message }) => message.startsWith('OMP_HOST is 0.0.0.0'));
    expect(await warned({ OMP_HOST: '0.0.0.0' })).toBe(true);
    expect(await warned({ OMP_HOST: '0.0.0.0', OMP_AUTH: 'open' })).toBe(false);
    expect(await warned({ OMP_HOST: '127.0.0.1' })).toBe(false);
  });

  it('warns of a variable that is not a setting', async () => {
    const { status, ok, findings } = await json({ ...MEMORY, OMP_SOMETHING: 'else' });
    expect({ status, ok }).toEqual({ status: 0, ok: true });
    expect(findings[0]).toEqual({
      area: 'configuration',
      level: 'warning',
      message: expect.stringContaining('OMP_SOMETHING is not a setting and is ignored'),
    });
  });
});

describe('embedding service', () => {
  const openAi = async () => {
    const service = await embeddingsServer();
    onTestFinished(service.close);
    const env = {
      OMP_PROVIDER: 'memory',
      OMP_EMBEDDER: 'openai',
      OMP_EMBEDDING_MODEL: 'some-model',
      OPENAI_BASE_URL: service.base_url,
      OPENAI_API_KEY: 'sk-hunter2',
    };
    return { service, env };
  };

  it('reports model and dimensions', async () => {
    const { service, env } = await openAi();
    const { status, findings } = await json(env);
    expect(status).toBe(0);
    expect(findings).toContainEqual({ area: 'embedding', level: 'ok', message: '"some-model" answers, 8 dimensions' });
    expect(service.received.length).toBeGreaterThan(0);
  });

  it('reports a rejected key with the reason of the service, without the key', async () => {
    const { service, env } = await openAi();
    service.answer = failing(401);
    // The service quotes it.
    const { status, findings } = await json({ ...env, OPENAI_API_KEY: 'sk-secret' });
    expect(status).toBe(1);
    const reason = 'HTTP 401: "inner detail of http://10.0.0.7 [key]"';
    expect(findings).toContainEqual({
      area: 'embedding',
      level: 'problem',
      message: `The embedding service does not work: it rejected the key (${reason}). Check OPENAI_API_KEY`,
    });
    expect(JSON.stringify(findings)).not.toContain('sk-secret');
  });

  it('reports a service that changes the length of its vectors', async () => {
    const { service, env } = await openAi();
    let asked = 0;
    service.answer = (request, response) => embeddings(asked++ === 0 ? 8 : 9)(request, response);
    const { status, findings } = await json(env);
    expect(status).toBe(1);
    expect(findings).toContainEqual({ area: 'embedding', level: 'problem', message: 'The embedding service failed' });
  });
});

describe('provider', () => {
  let store: TestDatabase;
  beforeAll(async () => {
    store = await openStore();
    return () => store.close();
  });

  it('memory: opens and answers', async () => {
    const { findings } = await json(MEMORY);
    expect(findings.at(-1)).toEqual({
      area: 'connection',
      level: 'ok',
      message: 'the provider memory opens and answers',
    });
  });

  it('postgres: checks the database also if the embedding service is down', async () => {
    const { status, findings } = await json({
      DATABASE_URL: store.url,
      OMP_POSTGRES_SCHEMA: store.schema,
      OMP_EMBEDDER: 'openai',
      OPENAI_BASE_URL: 'http://127.0.0.1:1/v1',
    });
    expect(status).toBe(1);
    expect(findings.filter(({ level }) => level === 'problem')).toEqual([
      { area: 'embedding', level: 'problem', message: expect.stringContaining('it cannot be reached') },
    ]);
    expect(findings.map(({ message }) => message).join('\n')).toContain(`no schema "${store.schema}" yet`);
    expect(await store.sql('select 1 from pg_namespace where nspname = $1', [store.schema])).toEqual([]);
  });
});

describe('output', () => {
  const findings: Finding[] = [
    { area: 'connection', level: 'ok', message: 'it answers' },
    {
      area: 'indexes',
      level: 'warning',
      message: 'no index',
      remedies: [{ sql: 'create index on "a\u001b[2Jb" (c);', reason: 'it helps' }],
    },
    { area: 'mapping', level: 'problem', message: 'no column' },
  ];

  const textOf = (some: readonly Finding[]) =>
    findingsText(some)
      .map(([text]) => text)
      .join('');

  it('is a line for each finding, its remedies, and a summary', () => {
    expect(textOf(findings)).toBe(
      [
        '✓ connection     it answers',
        '! indexes        no index',
        '                 -- it helps',
        '                 create index on "a\\u001b[2Jb" (c);',
        '✗ mapping        no column',
        '1 problem, 1 warning. The gateway cannot serve.',
        '',
      ].join('\n'),
    );
    expect(textOf(findings.slice(0, 2))).toContain('\n1 warning. The gateway can serve.\n');
    expect(textOf(findings.slice(0, 1))).toContain('\nNo problems found.\n');
  });

  it('is coloured by level on a terminal', async () => {
    const pieces = findingsText(findings);
    for (const [mark, colour] of [
      ['✓', 'green'],
      ['!', 'yellow'],
      ['✗', 'red'],
      ['1 problem, 1 warning. The gateway cannot serve.', 'red'],
    ]) {
      expect(pieces).toContainEqual([mark, colour]);
    }
    expect((await doctor(MEMORY, [], true)).stdout).toContain('\u001b[32m');
    expect((await doctor(MEMORY, [], false)).stdout).not.toContain('\u001b');
    expect((await doctor({ ...MEMORY, FORCE_COLOR: '1' }, ['--json'], true)).stdout).not.toContain('\u001b');
  });

  it.each([
    [{}, true, true],
    [{}, false, false],
    [{ NO_COLOR: '1' }, true, false],
    [{ NO_COLOR: '' }, true, true],
    [{ TERM: 'dumb' }, true, false],
    [{ FORCE_COLOR: '1' }, false, true],
    [{ FORCE_COLOR: '' }, false, true],
    [{ FORCE_COLOR: '0' }, true, false],
    [{ FORCE_COLOR: '1', NO_COLOR: '1' }, false, true],
  ])('with %j, a terminal: %s: coloured: %s', (env, isTerminal, coloured) => {
    expect(isColoured(env, isTerminal)).toBe(coloured);
  });
});

it.each([
  ['緑茶が好きです', true],
  ['likes green tea', false],
])('[Decision 34] warns if the bundled model cannot read most stored texts: %s: %s', async (text, warns) => {
  const embedder = await openEmbedder({ kind: 'local', cache_size: 0, workers: 1 }, recordingLog());
  onTestFinished(() => embedder.close());
  const store = await openStore();
  onTestFinished(() => store.close());
  const provider = await store.open({ embedder, mode: 'hybrid' });
  for (let n = 0; n < 10; n++) await provider.add({ input: memoryOf('u', `${text} ${n}`) }, call);
  const { findings } = await json({ DATABASE_URL: store.url, OMP_POSTGRES_SCHEMA: store.schema });
  const warnings = findings.filter(({ area, level }) => area === 'embedding' && level === 'warning');
  expect(warnings.map(({ message }) => message)).toEqual(warns ? [FOREIGN_SCRIPT] : []);
});

describe('[Decision 48] several stores', () => {
  const mounted = (stores: object) => ({ OMP_SEARCH_MODE: 'keyword', OMP_STORES: JSON.stringify(stores) });
  const KEYWORDS = { provider: 'memory', search: { mode: 'keyword' } };

  it('are all checked, each finding with its store, and how many memories of the root store each mount hides', async () => {
    const store = await openStore();
    onTestFinished(() => store.close());
    const provider = await store.open({ mode: 'keyword' });
    for (const scope of ['crm', 'crm/a', 'crm/a/b', 'crmx', 'docs', null])
      await provider.add({ input: memoryOf('u', 'text', { scope }) }, call);
    const env = {
      ...mounted({ crm: { mount: 'crm', ...KEYWORDS }, empty: { mount: 'a/b', required: false, ...KEYWORDS } }),
      DATABASE_URL: store.url,
      OMP_POSTGRES_SCHEMA: store.schema,
    };
    const { findings, ok } = await json(env);
    expect(ok).toBe(true);
    const messages = (name: string) =>
      findings.flatMap((each) => ('store' in each && each.store === name ? each.message : []));
    expect(messages('root')).toContain(
      'the store mounted at crm hides 3 memories at or below that scope; mount it elsewhere, or give them another scope before',
    );
    expect(messages('root')).toContain('nothing is stored at or below a/b, where another store is mounted');
    expect(messages('crm')).toEqual([
      'provider memory, keyword search, mounted at crm, required',
      'not needed: search.mode is keyword',
      'the provider memory opens and answers',
    ]);
    expect(messages('empty')[0]).toBe('provider memory, keyword search, mounted at a/b, optional');
    const { stdout } = await doctor(env);
    expect(stdout).toMatch(/^root\n✓ [\s\S]*\n\ncrm\n✓ [\s\S]*\n\nempty\n✓ /);
  });

  it('an optional one that cannot be opened is a warning, a required one a problem, and both name its settings', async () => {
    const dead = {
      ...KEYWORDS,
      provider: 'postgres',
      postgres: { url: 'postgres://127.0.0.1:1/x', read_url: 'postgres://127.0.0.1:1/y' },
    };
    for (const required of [true, false]) {
      const { status, findings } = await json({
        ...mounted({ dead: { mount: 'dead', required, ...dead } }),
        OMP_PROVIDER: 'memory',
      });
      expect(status).toBe(required ? 1 : 0);
      expect(findings.at(-1)).toMatchObject({
        store: 'dead',
        area: 'connection',
        level: required ? 'problem' : 'warning',
      });
      expect(findings.at(-1)?.message).not.toMatch(/DATABASE_URL|OMP_/);
    }
  });

  it('memories of a backend that cannot count them are read', async () => {
    const embedder = await openEmbedder({ kind: 'local', cache_size: 0, workers: 1 }, recordingLog());
    onTestFinished(() => embedder.close());
    const { client, pinecone, close } = await openPineconeSubject({ dimension: embedder.dimensions }, {}, { embedder });
    onTestFinished(close);
    for (const scope of ['crm', 'crm/a', 'other'])
      await client.add({ user_id: 'u', content: `text of ${scope}`, scope });
    const { findings } = await json({
      OMP_PROVIDER: 'pinecone',
      PINECONE_API_KEY: 'test',
      PINECONE_INDEX_HOST: pinecone.url,
      OMP_STORES: JSON.stringify({ crm: { mount: 'crm', ...KEYWORDS } }),
    });
    expect(findings.filter(({ area }) => area === 'mounts')).toEqual([
      expect.objectContaining({
        store: 'root',
        level: 'warning',
        message: expect.stringContaining('hides 2 memories'),
      }),
    ]);
  });
});
