import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startGateway } from '../process/gateway.ts';
import { FULL } from '../support/full.ts';
import type { WireErased } from '../support/wire.ts';
import { POSTGRES_STORES, settingsOn } from './postgres-stores.ts';

/** The full run has several statements that delete. */
const MEMORIES = FULL ? 12_000 : 2_000;
const ROUNDS = FULL ? 4 : 2;
const BATCH = 100;
/** From the first memories that are gone to the kill, at most: about as long as the rest of an erase takes. */
const REST_MS = FULL ? 400 : 0;
const user_id = 'ana';

describe.each(FULL ? POSTGRES_STORES : (['server'] as const))('on the %s Postgres', (store) => {
  test(`[Decision 62] killed (-9) ${ROUNDS} times amid an erase, a receipt that says complete is never wrong, and repeating goes on`, async ({
    skip,
  }) => {
    const env = { OMP_SEARCH_MODE: 'keyword', OMP_AUDIT_ERASED_USERS: 'hash', ...(await settingsOn(store, skip)) };
    let gateway = await startGateway({ env });
    const fill = async (missing: number) => {
      const memories = Array.from({ length: BATCH }, (_, n) => ({ user_id, content: `secret ${n}` }));
      for (let n = 0; n < missing / BATCH; n++) await gateway.client.batch(memories, `batch ${Math.random()}`);
    };
    const stored = async () => (await gateway.client.stats(user_id)).count;
    let amid = 0;
    for (let round = 0; round < ROUNDS; round++) {
      await fill(MEMORIES - (await stored()));
      const before = await stored();
      let answer: WireErased | undefined;
      let ended = false;
      const erasing = gateway.client
        .tell('DELETE', `/users/${user_id}/memories`)
        .then(
          ({ body }) => {
            answer = body as WireErased;
          },
          () => {},
        )
        .finally(() => {
          ended = true;
        });
      while (!ended && (await stored()) === before);
      await sleep(round === 0 ? 0 : Math.random() * REST_MS);
      await gateway.kill();
      await erasing;
      gateway = await startGateway({ env });
      if (answer?.receipt.complete) {
        expect(await stored()).toBe(0);
        const [again] = (await gateway.client.receipt(user_id)).stores;
        expect(Object.entries(again?.removed ?? {}).filter(([, count]) => count > 0)).toEqual([]);
      } else amid++;
    }
    console.log(`${amid} of ${ROUNDS} times amid an erase`);
    if (FULL) expect(amid).toBeGreaterThan(0);
    const { complete, stores } = await gateway.client.receipt(user_id);
    expect({ complete, left: stores[0]?.left }).toMatchObject({
      complete: true,
      left: { memories: 0, versions: 0, queued: 0, idempotency_keys: 0 },
    });
    expect(await stored()).toBe(0);
    // What a kill has left, too.
    const entries = await gateway.client.audit({ user_id, limit: 1_000 });
    expect(entries.filter(({ action }) => action === 'add')).toEqual([]);
    expect((await gateway.stop()).status).toBe(0);
  });
});
