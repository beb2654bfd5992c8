import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startGateway } from '../process/gateway.ts';
import { clientOf } from '../support/client.ts';
import { freshUser } from '../support/subject.ts';
import type { WireMemory, WireVersion } from '../support/wire.ts';
import { POSTGRES_STORES, settingsOn } from './postgres-stores.ts';

const ROUNDS = 4;
const MEMORIES = 8;

describe.each(POSTGRES_STORES)('on the %s Postgres', (store) => {
  test(`[Decision 55] killed ${ROUNDS} times during updates, every memory has exactly its versions`, async ({
    skip,
  }) => {
    const env = { ...(await settingsOn(store, skip)), OMP_SEARCH_MODE: 'keyword', OMP_VERSIONS_MAX: '10000' };
    let gateway = await startGateway({ env });
    const client = clientOf((path, init) => fetch(gateway.url + path, init));
    const user_id = freshUser();
    const all: WireMemory[] = [];
    for (let n = 0; n < MEMORIES; n++) all.push(await client.add({ user_id, content: 'number 0' }));
    /** The number in the content of each memory, as far as its writer knows. */
    const numbers = new Map(all.map(({ id }) => [id, 0]));
    let running = true;
    const numberOf = ({ content }: Pick<WireMemory, 'content'>) => Number(content.split(' ')[1]);
    const write = async (id: string) => {
      while (running) {
        const next = (numbers.get(id) as number) + 1;
        try {
          const { status } = await client.tell('PATCH', client.byId(id), { content: `number ${next}` });
          if (status === 200) numbers.set(id, next);
        } catch {
          // Killed: whether it was changed is read once the gateway answers again.
          for (let known = false; !known; ) {
            await sleep(50);
            const reply = await client.ask(client.byId(id)).catch(() => undefined);
            if (reply?.status !== 200) continue;
            const number = numberOf(reply.body as WireMemory);
            // What was acknowledged is not lost.
            expect([next - 1, next]).toContain(number);
            numbers.set(id, number);
            known = true;
          }
        }
      }
    };
    const writers = Promise.all(all.map(({ id }) => write(id)));
    for (let round = 0; round < ROUNDS; round++) {
      const before = [...numbers.values()].reduce((sum, number) => sum + number, 0);
      const reached = before + 40 + Math.floor(Math.random() * 40);
      while ([...numbers.values()].reduce((sum, number) => sum + number, 0) < reached) await sleep(5);
      await gateway.kill();
      gateway = await startGateway({ env });
    }
    running = false;
    await writers;
    for (const { id } of all) {
      const found: WireVersion[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await client.versions(id, { limit: 100, ...(cursor && { cursor }) });
        found.push(...page.items);
        cursor = page.next_cursor;
      }
      const last = numbers.get(id) as number;
      expect(found.map(({ version, memory }) => [version, numberOf(memory)])).toEqual(
        Array.from({ length: last + 1 }, (_, i) => [last + 1 - i, last - i]),
      );
    }
    expect((await gateway.stop()).status).toBe(0);
  });
});
