import { describe, expect, test } from 'vitest';
import { startGateway } from '../process/gateway.ts';
import { FULL } from '../support/full.ts';
import type { WireRetention } from '../support/wire.ts';
import { POSTGRES_STORES, settingsOn } from './postgres-stores.ts';

const MEMORIES = FULL ? 400 : 200;
const ROUNDS = FULL ? 4 : 2;
/** Memories that a pass deletes before it is interrupted, at most. */
const PASSED = 30;
const user_id = 'ana';

describe.each(FULL ? POSTGRES_STORES : (['server'] as const))('on the %s Postgres', (store) => {
  test(`[Decision 60] killed (-9) ${ROUNDS} times amid retention and run again, it deletes what is old, once, and nothing else, nor what somebody keeps meanwhile`, async ({
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
    /** What somebody has said meanwhile is to be kept. */
    const saved = new Set<string>();
    let amid = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const before = await ids();
      let ended = false;
      const passing = pass()
        .catch(() => {})
        .finally(() => {
          ended = true;
        });
      const passed = async (count: number) => {
        while (!ended && (await gateway.client.stats(user_id)).count > before.length - count);
      };
      await passed(1);
      const doomed = dueIds.filter((id) => before.includes(id) && !saved.has(id)).sort();
      for (const id of [doomed[PASSED / 3], doomed[PASSED / 2]])
        if (id) {
          const { status } = await gateway.client.tell('PATCH', gateway.client.byId(id), { tags: ['keep'] });
          if (status === 200) saved.add(id);
        }
      await passed(PASSED * (0.5 + Math.random() / 2));
      if (!ended) amid++;
      await gateway.kill();
      await passing;
      gateway = await startGateway({ env });
      const left = new Set(await ids());
      expect(memories.filter(({ id }, n) => (!due(n) || saved.has(id)) && !left.has(id))).toEqual([]);
    }
    console.log(`${amid} of ${ROUNDS} times amid retention, ${saved.size} memories saved`);
    if (FULL) expect(amid).toBeGreaterThan(0);
    await pass();

    expect((await ids()).sort()).toEqual(
      memories.flatMap(({ id }, n) => (due(n) && !saved.has(id) ? [] : [id])).sort(),
    );
    const entries = await gateway.client.audit({ user_id, limit: 1_000 });
    const deleted = entries.filter(({ action }) => action === 'delete').map(({ memory_id }) => memory_id);
    expect(deleted.sort()).toEqual(dueIds.filter((id) => !saved.has(id)).sort());
    expect((await gateway.stop()).status).toBe(0);
  });
});
