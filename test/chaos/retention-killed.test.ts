import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startGateway } from '../process/gateway.ts';
import type { WireRetention } from '../support/wire.ts';
import { POSTGRES_STORES, settingsOn } from './postgres-stores.ts';

const MEMORIES = 400;
const ROUNDS = 4;
const user_id = 'ana';

describe.each(POSTGRES_STORES)('on the %s Postgres', (store) => {
  test(`[Decision 60] killed (-9) ${ROUNDS} times at random during retention and run again, it deletes what is old, once, and nothing else`, async ({
    skip,
  }) => {
    const OMP_RETENTION = JSON.stringify([
      { tag: 'keep', days: null },
      { scope: 'chat/*', days: 30 },
    ]);
    const env = { OMP_SEARCH_MODE: 'keyword', OMP_RETENTION, ...(await settingsOn(store, skip)) };
    let gateway = await startGateway({ env });
    const old = new Date(Date.now() - 60 * 86_400_000).toISOString();
    const memories = Array.from({ length: MEMORIES }, (_, n) => ({
      ...{ id: `m-${n}`, user_id, content: `memory ${n}`, scope: n % 4 === 0 ? 'work/a' : 'chat/a' },
      ...{ tags: n % 4 === 1 ? ['keep'] : [], created_at: n % 5 === 0 ? new Date().toISOString() : old },
    }));
    for (let at = 0; at < MEMORIES; at += 100) {
      const reply = await gateway.client.tell('POST', '/import', { memories: memories.slice(at, at + 100) });
      expect(reply.status, reply.text).toBe(200);
    }
    const due = (n: number) => n % 4 >= 2 && n % 5 !== 0;
    const dueIds = memories.filter((_, n) => due(n)).map(({ id }) => id);
    const ids = async () => (await gateway.client.list({ user_id, limit: 500 })).items.map(({ id }) => id);

    const pass = async () => {
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const reply = await gateway.client.tell('POST', '/retention', { ...(cursor && { cursor }) });
        expect(reply.status, reply.text).toBe(200);
        cursor = (reply.body as WireRetention).next_cursor;
      }
    };
    let cut = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const passing = pass().catch(() => {});
      await sleep(Math.random() * 100);
      await gateway.kill();
      await passing;
      gateway = await startGateway({ env });
      const left = new Set(await ids());
      expect(memories.filter(({ id }, n) => !due(n) && !left.has(id))).toEqual([]);
      if (dueIds.some((id) => left.has(id))) cut++;
    }
    console.log(`${cut} of ${ROUNDS} times in the middle`);
    await pass();

    expect((await ids()).sort()).toEqual(memories.flatMap(({ id }, n) => (due(n) ? [] : [id])).sort());
    const entries = await gateway.client.audit({ user_id, limit: 1_000 });
    const deleted = entries.filter(({ action }) => action === 'delete').map(({ memory_id }) => memory_id);
    expect(deleted.sort()).toEqual(dueIds.sort());
    expect((await gateway.stop()).status).toBe(0);
  });
});
