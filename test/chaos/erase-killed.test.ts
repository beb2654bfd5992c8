import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startGateway } from '../process/gateway.ts';
import { FULL } from '../support/full.ts';
import type { WireErased } from '../support/wire.ts';
import { POSTGRES_STORES, settingsOn } from './postgres-stores.ts';

const MEMORIES = FULL ? 30_000 : 12_000;
const ROUNDS = FULL ? 8 : 3;
const BATCH = 100;

describe.each(POSTGRES_STORES)('on the %s Postgres', (store) => {
  test(`[Decision 62] killed (-9) ${ROUNDS} times at random during an erase, a receipt that says complete is never wrong`, async ({
    skip,
  }) => {
    const env = { OMP_SEARCH_MODE: 'keyword', OMP_AUDIT_ERASED_USERS: 'hash', ...(await settingsOn(store, skip)) };
    let gateway = await startGateway({ env });
    const user_id = 'ana';
    const fill = async (missing: number) => {
      const memories = Array.from({ length: BATCH }, (_, n) => ({ user_id, content: `secret ${n}` }));
      for (let n = 0; n < missing / BATCH; n++) await gateway.client.batch(memories, `batch ${Math.random()}`);
    };
    const stored = async () => (await gateway.client.stats(user_id)).count;
    for (let round = 0; round < ROUNDS; round++) {
      await fill(MEMORIES - (await stored()));
      let answer: WireErased | undefined;
      const erasing = gateway.client.tell('DELETE', `/users/${user_id}/memories`).then(
        ({ body }) => {
          answer = body as WireErased;
        },
        () => {},
      );
      await sleep(Math.random() * 400);
      await gateway.kill();
      await erasing;
      gateway = await startGateway({ env });
      const left = await stored();
      if (answer?.receipt.complete) expect(left, `round ${round}`).toBe(0);
    }
    const { complete, stores } = await gateway.client.receipt(user_id);
    expect({ complete, left: stores[0]?.left }).toMatchObject({
      complete: true,
      left: { memories: 0, versions: 0, queued: 0, idempotency_keys: 0 },
    });
    expect(await stored()).toBe(0);
    expect((await gateway.stop()).status).toBe(0);
  });
});
