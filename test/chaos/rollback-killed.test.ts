import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startGateway } from '../process/gateway.ts';
import type { WireMemory, WireRollback, WireVersions } from '../support/wire.ts';
import { POSTGRES_STORES, settingsOn } from './postgres-stores.ts';

const MEMORIES = 120;
const ROUNDS = 4;

describe.each(POSTGRES_STORES)('on the %s Postgres', (store) => {
  test(`[Decision 56] killed (-9) ${ROUNDS} times at random during a rollback and run again, every memory is undone once`, async ({
    skip,
  }) => {
    const env = { OMP_SEARCH_MODE: 'keyword', ...(await settingsOn(store, skip)) };
    let gateway = await startGateway({ env });
    const user_id = 'ana';
    const add = (content: string) => gateway.client.add({ user_id, content });
    const before: WireMemory[] = [];
    for (let n = 0; n < MEMORIES; n++) before.push(await add(`true ${n}`));
    await sleep(5);
    const since = new Date().toISOString();
    await sleep(5);
    for (const [n, { id }] of before.entries()) {
      // Some are not changed, others up to three times.
      for (let k = 0; k < n % 4; k++) await gateway.client.update(id, { content: `poison ${n} ${k}` });
      if (n % 5 === 0) await add(`poison ${n}`);
    }

    const roll = async () => {
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const reply = await gateway.client.tell('POST', `/users/${user_id}/rollback`, { since, limit: 7, cursor });
        expect(reply.status, reply.text).toBe(200);
        cursor = (reply.body as WireRollback).next_cursor;
      }
    };
    for (let round = 0; round < ROUNDS; round++) {
      const rolling = roll().catch(() => {});
      await sleep(Math.random() * 60);
      await gateway.kill();
      await rolling;
      gateway = await startGateway({ env });
    }
    await roll();

    const { items } = await gateway.client.list({ user_id, limit: 500 });
    const contents = new Map(items.map(({ id, content }) => [id, content]));
    expect(contents).toEqual(new Map(before.map(({ id, content }) => [id, content])));
    for (const [n, { id }] of before.entries()) {
      const { body } = await gateway.client.ask(`/memories/${id}/versions`);
      const versions = (body as WireVersions).items;
      const poisoned = n % 4;
      const numbers = versions.map(({ version }) => version);
      const due = poisoned === 0 ? 1 : poisoned + 2;
      expect(numbers, `memory ${n}`).toEqual(Array.from({ length: due }, (_, at) => due - at));
      const undone = versions.filter(({ memory }) => (memory['x-omp-origin'] as { via: string }).via === 'rollback');
      expect(
        undone.map(({ version }) => version),
        `memory ${n}`,
      ).toEqual(poisoned === 0 ? [] : [due]);
    }
    expect((await gateway.stop()).status).toBe(0);
  });
});
