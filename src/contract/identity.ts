import { monotonicFactory } from 'ulid';

const ulid = monotonicFactory();
let latest = 0;

/**
 * Id and creation time of a new record, for providers that make their own. Within one process both only ever grow,
 * also when the clock is set back, so that records made one after the other list in that order.
 */
export function newIdentity(): { id: string; created_at: string } {
  latest = Math.max(latest, Date.now());
  return { id: `mem_${ulid(latest)}`, created_at: new Date(latest).toISOString() };
}
