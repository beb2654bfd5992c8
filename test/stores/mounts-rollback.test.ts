import { describe, expect, it } from 'vitest';
import type { Client, Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import type { WireRollback } from '../support/wire.ts';
import { altered, COMPLETE, CRM, failing, HANDBOOK, leftOut, once, open, PARTIAL } from './mounts-subject.ts';

const SINCE = '2001-01-01';

type Item = WireRollback['items'][number];

const ask = (client: Client, user_id: string, body: object = {}): Promise<Reply> =>
  client.tell('POST', `/users/${user_id}/rollback`, { since: SINCE, ...body });

/** Pages of two memories, until there are no more. */
async function rolledBack(client: Client, user_id: string, body: object = {}): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const reply = await ask(client, user_id, { ...body, limit: 2, ...(cursor && { cursor }) });
    expect(reply.status, reply.text).toBe(200);
    const page = reply.body as WireRollback;
    items.push(...page.items.filter(({ action }) => action !== 'deleted'));
    cursor = page.next_cursor;
  }
  return items;
}

const SCOPES = [null, 'notes', 'crm', 'crm/x', 'docs/handbook', 'docs/handbook/y'];
const contents = (items: readonly ({ readonly content: string } | undefined)[]) =>
  items.map((item) => item?.content).sort();

describe('[Decision 56] [Decision 49] a rollback of several stores', () => {
  it('undoes what was written in each of them, by the ids that clients see, with entries in the log of the root store', async () => {
    const { client, user_id, add, as } = await open();
    for (const scope of SCOPES) await add(`tea in ${scope}`, scope);
    const dry = await rolledBack(client, user_id, { dry_run: true });
    expect(contents(dry.map(({ memory }) => memory))).toEqual(contents((await client.list({ user_id })).items));
    expect(await rolledBack(client, user_id)).toEqual(dry);
    expect((await client.list({ user_id })).items).toEqual([]);
    const deleted = (await client.audit({ user_id })).filter(({ action }) => action === 'delete');
    expect(deleted.map(({ memory_id }) => memory_id).sort()).toEqual(dry.map(({ id }) => id).sort());
    expectError(await ask(as('write:*', 'delete:crm/*'), user_id), 'scope_denied');
  });

  it('gives what was changed its version before back, where the store keeps versions', async () => {
    const unversioned = once(altered(() => ({ versions: undefined }) as never));
    const { client, user_id, add } = await open([HANDBOOK, { ...CRM, current: unversioned }]);
    const all = await Promise.all([null, 'crm', 'docs/handbook'].map((scope) => add(`true ${scope}`, scope)));
    const since = new Date(Math.max(...all.map(({ updated_at }) => Date.parse(updated_at ?? ''))) + 1).toISOString();
    await expect.poll(() => new Date().toISOString() > since).toBe(true);
    for (const { id } of all) await client.update(id, { content: 'poison' });
    const items = await rolledBack(client, user_id, { since });
    expect(items.map(({ id, memory: _, ...rest }) => [id?.split('~')[1] ?? 'root', rest]).sort()).toEqual([
      ['crm', { action: 'keep', reason: 'no_version' }],
      ['handbook', { action: 'restore', version: 1 }],
      ['root', { action: 'restore', version: 1 }],
    ]);
    expect(contents((await client.list({ user_id })).items)).toEqual(['poison', 'true docs/handbook', 'true null']);
  });

  it('leaves out a store that cannot, or an optional one that fails, and says so', async () => {
    for (const [current, expected] of [
      [once(altered(() => ({ delete: undefined }) as never)), { ...COMPLETE, without: [['crm'], 'crm'] }],
      [failing, PARTIAL],
    ] as const) {
      const { client, user_id, add } = await open([HANDBOOK, { ...CRM, required: false, current }]);
      for (const scope of [null, 'docs/handbook']) await add('tea', scope);
      expect(leftOut(await ask(client, user_id))).toEqual(expected);
      const { items } = await client.list({ user_id });
      expect(items).toEqual([]);
    }
  });
});
