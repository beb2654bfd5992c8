import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { startEngine } from '../../providers/postgres/embedded/engine.ts';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { configuredKeysSchema, hashedKey } from '../../src/auth/configured-keys.ts';
import { hashOf, idOf } from '../../src/auth/credentials.ts';
import { loadConfig } from '../../src/config/load.ts';
import { runKeys } from '../../src/features/keys/command.ts';
import { openStore, type TestDatabase } from '../postgres/store.ts';
import { commandHere } from '../support/command.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';
import { call } from './call.ts';

let store: TestDatabase;
let folder: string;
let env: Record<string, string>;
beforeAll(async () => {
  store = await openStore();
  folder = mkdtempSync(join(tmpdir(), 'omp-keys-'));
  env = {
    DATABASE_URL: store.url,
    OMP_POSTGRES_SCHEMA: store.schema,
    OMP_SEARCH_MODE: 'keyword',
    OMP_DATA_DIR: folder,
  };
  expect((await keys('list')).status).toBe(0);
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => store.sql(`delete from ${store.names.apiKeys}`));

const keysWith = (environment: Readonly<Record<string, string>>, argv: readonly string[]) =>
  commandHere((terminal) => runKeys(argv, terminal), environment);
const keys = (...argv: readonly string[]) => keysWith(env, argv);
const listed = async () => JSON.parse((await keys('list', '--json')).stdout) as Record<string, unknown>[];
const READ = ['--grant', 'read:*'];

describe('keys create', () => {
  it('[Decision 13] prints the key to stdout and the rest to stderr, and stores its hash', async () => {
    const made = await keys(
      'create',
      'editor',
      '--grant',
      'read:coding/*',
      '--grant',
      'write:coding/*',
      '--user',
      'ana',
    );
    expect(made.status).toBe(0);
    const key = made.stdout.trimEnd();
    expect(made.stdout).toBe(`${key}\n`);
    expect(idOf(key)).toBeDefined();
    expect(made.stderr).toContain('only time');
    expect(made.stderr).not.toContain(key);
    const rows = await store.sql(`select * from ${store.names.apiKeys}`);
    expect(rows).toMatchObject([
      { id: idOf(key), name: 'editor', hash: hashOf(key), users: ['ana'], grants: ['read:coding/*', 'write:coding/*'] },
    ]);
    expect(JSON.stringify(rows)).not.toContain(key.slice(-43));
  });

  it('says that the first key closes the gateway', async () => {
    expect((await keys('create', 'one', ...READ)).stderr).toContain('first key');
    expect((await keys('create', 'two', ...READ)).stderr).not.toContain('first key');
  });

  it.each([
    ['3000-01-02', '3000-01-02T00:00:00.000Z'],
    ['3000-01-02T03:04:05+01:00', '3000-01-02T02:04:05.000Z'],
  ])('--expires %s', async (given, meant) => {
    expect((await keys('create', 'one', ...READ, '--expires', given)).status).toBe(0);
    expect(await listed()).toMatchObject([{ expires_at: meant }]);
  });

  it('--expires 90d is relative to now', async () => {
    const before = Date.now();
    await keys('create', 'one', ...READ, '--expires', '90d');
    const days = 90 * 86_400_000;
    const expires = Date.parse((await listed())[0]?.expires_at as string);
    expect(expires).toBeGreaterThanOrEqual(before + days);
    expect(expires).toBeLessThanOrEqual(Date.now() + days);
  });

  it('rejects a duplicate name', async () => {
    await keys('create', 'one', ...READ);
    const again = await keys('create', 'one', ...READ);
    expect(again).toMatchObject({ status: 1, stdout: '' });
    expect(again.stderr).toContain('exists already');
    expect(await listed()).toHaveLength(1);
  });
});

describe('keys create --print', () => {
  it('[Decision 13] prints a key and its configuration, and writes nothing', async () => {
    const options = ['--user', `o'"n\\e`, '--expires', '3000-01-01', '--print'];
    const printed = await keysWith({ OMP_DATA_DIR: folder }, ['create', 'my: editor', ...READ, ...options]);
    expect(printed.status).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
    const [key = '', ...lines] = printed.stdout.split('\n');
    expect(lines.join('\n')).not.toContain(key.slice(-43));

    const file = join(folder, 'gateway.yaml');
    writeFileSync(file, lines.join('\n'));
    const fromFile = loadConfig({ env: { OMP_CONFIG: file } }).config.auth.keys;
    const [, inEnvironment = ''] = /OMP_AUTH_KEYS=(.*)/.exec(printed.stderr) ?? [];
    expect(loadConfig({ env: { OMP_AUTH_KEYS: inEnvironment } }).config.auth.keys).toEqual(fromFile);
    rmSync(file);

    const open = { keys: fromFile, store: undefined, jwt: undefined, required: false, log: recordingLog() };
    const principal = await (await openAuthenticator(open)).authenticate(key, call);
    expect(principal).toMatchObject({ app: 'my: editor', users: [`o'"n\\e`], grants: { read: null, write: [] } });
  });

  it('omits unused fields', async () => {
    const { stdout } = await keys('create', 'editor', ...READ, '--print');
    const [key = '', ...lines] = stdout.split('\n');
    const { auth } = parse(lines.join('\n')) as { auth: { keys: unknown } };
    const [configured, ...more] = configuredKeysSchema.parse(auth.keys);
    expect(more).toEqual([]);
    expect(configured).toEqual({ name: 'editor', key: expect.anything(), grants: ['read:*'] });
    expect(hashedKey(configured?.key ?? '')).toEqual({ id: idOf(key), hash: hashOf(key) });
  });
});

describe('keys list', () => {
  it('shows everything except the secret, as a table and as JSON', async () => {
    const { stdout } = await keys('create', 'one', ...READ, '--untrusted', '--user', 'ana', '--user', 'b\u001b[31mb');
    const key = stdout.trimEnd();
    await keys('create', 'two', '--grant', '*:*', '--expires', '3000-01-01');
    // Keys of one millisecond have the order of their random ids.
    await store.sql(
      `update ${store.names.apiKeys} set expires_at = '2001-01-01Z', created_at = created_at + interval '1 s' where name = 'two'`,
    );
    await keys('revoke', 'one');
    const [table, json] = [await keys('list'), await keys('list', '--json')];
    const [head = '', ...rows] = table.stdout.trimEnd().split('\n');
    expect(head).toMatch(/^ID +NAME +STATE +TRUST +GRANTS +USERS +CREATED +EXPIRES +LAST USED$/);
    expect(rows).toEqual([
      expect.stringMatching(
        /^[a-z0-9]{12} {2}two {3}expired {2}trusted {4}\*:\* {5}all +\S+Z {2}2001-01-01T00:00:00Z {2}never$/,
      ),
      expect.stringMatching(
        /^[a-z0-9]{12} {2}one {3}revoked {2}untrusted {2}read:\* {2}ana b\\u001b\[31mb {2}\S+Z {2}never +never$/,
      ),
    ]);
    expect((JSON.parse(json.stdout) as object[]).map((each) => Object.keys(each).sort())).toEqual(
      Array.from({ length: 2 }, () => [
        'created_at',
        'expires_at',
        'grants',
        'id',
        'last_used_at',
        'name',
        'revoked_at',
        'untrusted',
        'users',
      ]),
    );
    const shown = [table, json].flatMap(({ stdout, stderr }) => [stdout, stderr]).join('');
    for (const secret of [key, key.slice(-43), hashOf(key)]) expect(shown).not.toContain(secret);
  });
});

describe('keys revoke', () => {
  it.each(['name', 'id'] as const)('by %s', async (by) => {
    const { stdout } = await keys('create', 'one', ...READ);
    const id = idOf(stdout.trimEnd()) ?? '';
    const revoked = await keys('revoke', by === 'id' ? id : 'one');
    expect(revoked.status).toBe(0);
    const [{ revoked_at } = {}] = await listed();
    expect(revoked_at).not.toBeNull();
    expect(revoked.stdout).toBe(`${id} is revoked since ${revoked_at}\n`);
  });

  it('of an unknown key fails', async () => {
    expect(await keys('revoke', 'nobody')).toMatchObject({ status: 1, stdout: '' });
  });
});

describe('keys without a store', () => {
  it.each([['create', 'one', ...READ], ['list'], ['revoke', 'one']])(
    'the memory provider: keys %s',
    async (...argv) => {
      const refused = await keysWith({ OMP_PROVIDER: 'memory' }, argv);
      expect(refused).toMatchObject({ status: 1, stdout: '' });
      expect(refused.stderr).toContain('the provider memory stores no keys');
      expect(refused.stderr).toContain('--print');
    },
  );

  it('a data folder whose gateway uses another TMPDIR', async () => {
    const taken = await makeDataDir();
    const engine = await startEngine(taken, recordingLog());
    rmSync(engine.config.host as string, { recursive: true });
    try {
      const refused = await keysWith({}, ['list', '--data-dir', taken]);
      expect(refused).toMatchObject({ status: 1, stdout: '' });
      expect(refused.stderr).toMatch(/a gateway runs on the data folder .* as the same user and with the same TMPDIR/);
    } finally {
      await engine.close();
      rmSync(taken, { recursive: true, force: true });
    }
  });

  it('a server that is down', async () => {
    const url = 'postgres://omp:hunter2@127.0.0.1:1/omp';
    const refused = await keysWith({ DATABASE_URL: url }, ['list']);
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toMatch(/cannot (be reached|connect)/);
    expect(refused.stderr).not.toContain('hunter2');
    expect(refused.stderr).not.toContain('embedded');
  });

  it('a configuration with errors is reported as at the start of the gateway', async () => {
    const refused = await keysWith({ OMP_PORT: 'x', OMP_PROVIDR: 'memory' }, ['list', '--provider', 'postgress']);
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toContain('The configuration has 3 mistakes');
    const warned = await keysWith({ OMP_SOMETHING: 'else' }, ['list', '--provider', 'memory']);
    expect(warned.stderr).toContain('OMP_SOMETHING is not a setting and is ignored');
  });
});
