import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runWebhooks } from '../../../src/features/webhooks/command.ts';
import { openStore, type TestDatabase } from '../../postgres/store.ts';
import { commandHere } from '../../support/command.ts';
import { SECRET } from './gateway.ts';
import { openReceiver } from './receiver.ts';

let store: TestDatabase;
let folder: string;
let env: Record<string, string>;
beforeAll(async () => {
  store = await openStore();
  folder = mkdtempSync(join(tmpdir(), 'omp-webhooks-'));
  env = {
    ...{ DATABASE_URL: store.url, OMP_POSTGRES_SCHEMA: store.schema, OMP_SEARCH_MODE: 'keyword' },
    ...{ OMP_DATA_DIR: folder, OMP_WEBHOOK_SECRET: SECRET },
  };
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(argv: readonly string[], more: Record<string, string> = {}) {
  const environment = Object.fromEntries(Object.entries({ ...env, ...more }).filter(([, value]) => value !== ''));
  return commandHere((terminal) => runWebhooks(argv, terminal), environment);
}

it('[Decision 52] the command prints the secret once, and what it lists without it', async () => {
  const receiver = await openReceiver();
  const open = { OMP_WEBHOOK_PRIVATE: 'on' };
  const made = await run(
    ['create', receiver.url, '--user', 'ana', '--user', 'ben', '--scope', 'a/*', '--action', 'add'],
    open,
  );
  const [id = '', secret = ''] = made.stdout.split('\n');
  expect([made.status, made.stderr]).toEqual([0, expect.stringContaining('only time')]);
  const rows = JSON.stringify(await store.sql(`select * from ${store.names.webhooks}`));
  expect(rows).toContain(id);
  expect(rows).not.toContain(secret.slice(6));
  const listed = await run(['list'], open);
  expect(listed.stdout).toBe(`${id}  active  ${receiver.url}\n  users ana ben, scopes a/*, actions add\n`);
  const [webhook, ...others] = JSON.parse((await run(['list', '--json'], open)).stdout);
  expect([webhook.id, webhook.secret, others]).toEqual([id, undefined, []]);

  expect((await run(['test', id], open)).stdout).toMatch(/ webhook\.test: delivered \(204\), \d+ ms\n$/);
  expect(receiver.accepts(secret)).toBe(true);
  receiver.react(() => 500);
  expect(await run(['test', id], open)).toMatchObject({ status: 1, stdout: expect.stringContaining('rejected (500)') });
  expect((await run(['rotate', id])).stdout).toMatch(/^whsec_\S{44}\n$/);
  expect((await run(['resume', id, '--from-now'])).stdout).toBe(`${id} is active\n`);
  expect((await run(['delete', id])).stdout).toBe(`${id} is deleted\n`);
  expect((await run(['list'])).stdout).toBe('');
});

it.each<[readonly string[], string, Record<string, string>?]>([
  [['create', 'http://127.0.0.1/'], 'url: must be an https://'],
  [['create', 'https://example.com/', '--action', 'read'], 'actions.0'],
  [['create', 'https://example.com/', '--scope', ''], 'scope'],
  [['delete', 'wh_1'], 'no webhook has this id'],
  [['test', 'wh_1'], 'no webhook has this id'],
  [['rotate', 'wh_1'], 'no webhook has this id'],
  [['resume', 'wh_1'], 'no webhook has this id'],
  [['list'], 'openssl rand', { OMP_WEBHOOK_SECRET: '' }],
  [['list'], 'POST /webhooks', { OMP_PROVIDER: 'memory' }],
])('[Decision 52] %j fails: %s', async (argv, message, more) => {
  expect(await run(argv, more)).toEqual({ status: 1, stdout: '', stderr: expect.stringContaining(message) });
});
