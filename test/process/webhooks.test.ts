import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { runWebhooks } from '../../src/features/webhooks/command.ts';
import { openReceiver } from '../features/webhooks/receiver.ts';
import { testDatabase } from '../postgres/databases.ts';
import { commandHere } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { dataFolder, startGateway } from './gateway.ts';

type Environment = Readonly<Record<string, string>>;
const SECRETS = { OMP_WEBHOOK_SECRET: 'a secret of all gateways, long enough', OMP_WEBHOOK_PRIVATE: 'on' };

/** Runs `omp-gateway webhooks …` beside a gateway, which must succeed; returns what it printed. */
async function webhooks(env: Environment, ...args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await commandHere((terminal) => runWebhooks(args, terminal), env);
  expect(status, stderr).toBe(0);
  return stdout;
}
const create = async (env: Environment, ...args: readonly string[]) => {
  const [id = '', secret = ''] = (await webhooks(env, 'create', ...args)).split('\n');
  return { id, secret };
};

describe('[Decision 52] omp-gateway webhooks', () => {
  it('manages the webhooks of an embedded Postgres, while a gateway delivers', async () => {
    // Where the commands look for its socket.
    const env = { OMP_DATA_DIR: await dataFolder(), TMPDIR: tmpdir(), ...SECRETS };
    const gateway = await startGateway({ env: { ...env, OMP_LOG_LEVEL: 'trace' } });
    const receiver = await openReceiver();
    const { id, secret } = await create(env, receiver.url, '--user', 'ana', '--action', 'add');
    expect(await webhooks(env, 'test', id)).toContain('webhook.test: delivered (204)');
    expect(receiver.accepts(secret)).toBe(true);
    const memory = await gateway.client.add({ user_id: 'ana', content: 'tea' });
    await gateway.client.add({ user_id: 'ben', content: 'tea' });
    await eventually(() => expect(receiver.received.at(-1)?.data.id).toBe(memory.id));
    await eventually(async () => {
      const [webhook] = JSON.parse(await webhooks(env, 'list', '--json'));
      expect(webhook.deliveries[0]).toMatchObject({ type: 'memory.add', outcome: 'delivered' });
    });
    expect(await webhooks(env, 'list')).toContain(
      `${id}  active  ${receiver.url}\n  users ana, scopes all, actions add\n`,
    );
    const rotated = (await webhooks(env, 'rotate', id)).trimEnd();
    expect(await webhooks(env, 'resume', id, '--from-now')).toBe(`${id} is active\n`);
    expect(await webhooks(env, 'delete', id)).toBe(`${id} is deleted\n`);
    const { stdout, stderr } = await gateway.stop();
    for (const one of [secret, rotated, SECRETS.OMP_WEBHOOK_SECRET]) expect(stdout + stderr).not.toContain(one);
  });
});

it('[Decision 52] a killed gateway loses no change: another delivers what is missing, repeated ones with the same id', async ({
  skip,
}) => {
  skip(SERVER_URL === '', NO_SERVER);
  const database = await testDatabase();
  const env = { DATABASE_URL: database.url, OMP_AUDIT: 'writes', ...SECRETS };
  let gateways = [await startGateway({ env }), await startGateway({ env })];
  const receiver = await openReceiver();
  let answers = 0;
  let killed = 0;
  receiver.react(async () => {
    // Between the delivery and its note: the receiver has it, the gateway does not know.
    if (++answers % 60 === 30 && killed < 3) {
      killed++;
      await Promise.all(gateways.map(({ kill }) => kill()));
      gateways = [];
    }
    return 204;
  });
  await create(env, receiver.url);
  /** Acknowledged adds: user and id. */
  const acknowledged: (readonly [user: string, id: string])[] = [];
  const write = async (count: number) => {
    for (let n = 0; n < count; ) {
      const user_id = `user ${n % 3}`;
      const reply = await gateways[n % 2]?.client
        .tell('POST', '/memories', { user_id, content: 'x' })
        .catch(() => undefined);
      if (reply?.status === 201) {
        acknowledged.push([user_id, (reply.body as { id: string }).id]);
        n++;
      } else {
        gateways = [await startGateway({ env }), await startGateway({ env })];
        // The leases of the dead ones are over.
        await database.sql('update omp.webhooks set held_until = now()');
      }
    }
  };
  await write(150);
  const firstCopies = () => {
    const seen = new Set<string>();
    return receiver.received
      .filter(({ id }) => !seen.has(id) && seen.add(id))
      .map(({ data }) => [data.user_id, data.id] as const);
  };
  // An add whose answer was lost with its gateway is delivered too.
  const known = (id: string | null) => acknowledged.some(([, one]) => one === id);
  await eventually(async () => {
    if (gateways.length === 0) await write(1);
    expect(firstCopies().filter(([, id]) => known(id)).length).toBe(acknowledged.length);
  });
  const idsOf = (user: string, pairs: readonly (readonly [string, string | null])[]) =>
    pairs.flatMap(([one, id]) => (one === user && known(id) ? [id] : []));
  for (const user of ['user 0', 'user 1', 'user 2']) {
    expect(idsOf(user, firstCopies())).toEqual(idsOf(user, acknowledged));
  }
  expect(killed).toBeGreaterThan(0);
});
