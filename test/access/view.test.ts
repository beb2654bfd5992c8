import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { Subject } from '../support/subject.ts';
import { openBackdoor } from './callers.ts';
import { RUNS, SEED } from './random.ts';
import { STORES } from './stores.ts';
import { checkView, scene } from './view.ts';

/**
 * For random data and random grants, what a key sees through any verb is what anybody sees of a store that holds
 * nothing else: limits, pages, budgets, rarity and scores know nothing of what is hidden.
 */
describe('a key sees what it would see if there were nothing else', () => {
  const opened: Subject[] = [];
  afterEach(async () => {
    for (const subject of opened.splice(0)) await subject.close();
  });

  it.for(STORES)('[Decision 14] [Decision 21] on $label, ranking $mode', async ({ label, open, mode, share }) => {
    const door = openBackdoor();
    const start = async () => {
      const subject = await open({ mode, authenticator: door.authenticator });
      opened.push(subject);
      return subject;
    };
    const seen = { records: 0, hidden: 0, refused: 0, entries: 0 };
    const stores = { whole: await start(), part: await start(), door, seen };
    const property = fc.asyncProperty(scene, (drawn) => checkView(drawn, stores));
    await fc.assert(property, { numRuns: Math.ceil(RUNS * share), seed: SEED });
    console.log(`${label}, ${mode}: ${JSON.stringify(seen)}`);
    const { entries, ...rest } = seen;
    expect(Math.min(...Object.values(rest))).toBeGreaterThan(0);
    expect(entries > 0).toBe(stores.whole.capabilities.features.supports_audit);
  });
});
