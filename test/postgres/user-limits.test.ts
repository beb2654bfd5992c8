import { expect, it, onTestFinished } from 'vitest';
import { limitsHold } from '../conformance/limits.suite.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';
import { call, storeForAll } from './store.ts';

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
