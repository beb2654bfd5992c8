import { backgroundCall } from '#contract';
import { toContext } from '../context/context.ts';
import { list } from '../verbs/get-list-update-delete.ts';
import type { UserMemories } from './tools.ts';

/** How many of the newest memories are considered. */
const NEWEST = 100;
/** Length of the profile, in tokens. */
const BUDGET = 1_000;
/** Confidence of a memory that states none. */
const USUAL = 0.5;

/** The newest memories of a user as a context block: those with the highest confidence first, then the newest. */
export async function profile(memories: UserMemories, signal: AbortSignal): Promise<string> {
  const { items } = await memories.run(list, { limit: NEWEST, untrusted: false }, signal);
  const hits = items.map((memory) => ({ memory: { ...memory, extensions: {} }, score: memory.confidence ?? USUAL }));
  hits.sort((a, b) => b.score - a.score);
  const call = backgroundCall('profile', signal);
  return (await toContext(hits, { budget: BUDGET }, { now: new Date(), untrusted: false }, call)).text;
}
