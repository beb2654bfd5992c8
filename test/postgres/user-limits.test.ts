import { expect, it, onTestFinished } from 'vitest';
import { type Memory, NO_LIMITS } from '#contract';
import { openProvider } from '../../src/registry.ts';
import { limitsHold } from '../conformance/limits.suite.ts';
import { IS_CITUS } from '../support/postgres-server.ts';
import { contextOf } from '../support/requests.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';
import { call, memoryOf, refTo, storeForAll } from './store.ts';

const store = storeForAll();

async function openGatewayOn(): Promise<Subject> {
  const { url, schema } = store;
  const subject = await openSubject({ provider: 'postgres', options: { url, schema, connections: 2 } });
  onTestFinished(() => subject.close());
  return subject;
}

it('[Decision 59] two gateways together never exceed a limit, and reject nothing that fits', async () => {
  const subjects = [await openGatewayOn(), await openGatewayOn()];
  const [{ provider }] = subjects as [Subject];
  const usage = (user_id: string) => (provider.userUsage as NonNullable<typeof provider.userUsage>)({ user_id }, call);
  for (let round = 0; round < 3; round++)
    await limitsHold(
      subjects.map(({ limited }) => limited),
      usage,
    );
});

it('[Decision 59] without limits nothing is counted; a gateway with limits that starts later counts it', async () => {
  const user_id = freshUser();
  const [first, plain] = [await openGatewayOn(), await openGatewayOn()];
  await first.limited({ memories: 3 }).add({ user_id, content: 'one' });
  const row = () =>
    store.sql<{ memories: string }>(`select * from ${store.names.userUsage} where user_id = $1`, [user_id]);
  const before = await row();
  expect(before).toMatchObject([{ memories: '1', adds_per_day: '1' }]);
  const { id } = await plain.client.add({ user_id, content: 'two' });
  await plain.client.update(id, { content: 'too' });
  await plain.client.batch([{ user_id, content: 'three' }]);
  expect(await row()).toEqual(before);
  const later = (await openGatewayOn()).limited({ memories: 3 });
  expect((await later.tell('POST', '/memories', { user_id, content: 'four' })).status).toBe(413);
});

it('[Decision 59] a change that comes too late is rejected without counting the user', async () => {
  const { url, schema } = store;
  const options = { url, schema, connections: 1, ...(IS_CITUS && { distributed: 'citus' }) };
  const provider = await openProvider('postgres', options, contextOf({ user_limits: true }));
  onTestFinished(provider.close);
  const [user_id, limits] = [freshUser(), () => NO_LIMITS];
  const old = (await provider.add?.({ input: memoryOf(user_id, 'one'), vector: null, limits }, call)) as Memory;
  const change = (content: string) => {
    const ref = { ...refTo(old.id), versions: [old.updated_at] };
    return provider.update?.({ ref, patch: { content }, vector: null, current: old, limits }, call);
  };
  await change('two and a half');
  const row = () => store.sql(`select * from ${store.names.userUsage} where user_id = $1`, [user_id]);
  const before = await row();
  await expect(change('three and a half')).rejects.toMatchObject({ version: expect.anything() });
  await provider.delete?.(refTo(old.id), call);
  expect(await change('four and a half')).toBeUndefined();
  expect(await row()).toEqual(before);
});
