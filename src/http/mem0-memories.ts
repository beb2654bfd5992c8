import type { Context } from 'hono';
import type { z } from 'zod';
import { invalidRequest, OmpError, UNTRUSTED } from '#contract';
import { mem0Scope } from '#toolbox';
import { isAllowed } from '../core/demands.ts';
import type { Store } from '../core/store.ts';
import type { Gate } from '../verbs/gate.ts';
import { VERB_TABLE } from '../verbs/index.ts';
import type { Verb } from '../verbs/verb.ts';
import type { WireMemory } from '../verbs/wire-memory.ts';
import type { Env } from './request.ts';

/*
 * The memories of a user, an agent or a run, as mem0's interface reads, counts and deletes them by the verbs.
 */

/** The user, agent and run that memories belong to. */
export interface Entity {
  readonly user_id: string;
  readonly agent: string | undefined;
  readonly run: string | undefined;
}

/** Memories that one call reads or deletes: a page of mem0 has a number, ours continues where the last one ended. */
const MAX_LISTED = 10_000;
const PAGE = 500;
/** Memories that are deleted at once. */
const TOGETHER = 20;
/** Memories that one delete takes along because the deleted one supersedes them. */
const MAX_LINKED = 1_000;
/** Maximum bytes of the memories in one answer, as JSON. */
export const MAX_PAGE_JSON_BYTES = 16 * 1024 * 1024;

type Described = Pick<Gate, 'description'>;

export const run = <Input extends z.ZodObject, Output, Need extends keyof Store>(
  c: Context<Env>,
  verb: Verb<Input, Output, Need>,
  input: object,
): Promise<Output> => c.get('session').run(verb, input, c.get('call'));

/** The memories from `skip` on, at most `most`, and whether there are more. */
export async function readPage(
  c: Context<Env>,
  entity: Entity,
  { skip, most }: { readonly skip: number; readonly most: number },
): Promise<{ readonly items: WireMemory[]; readonly more: boolean }> {
  if (skip + most > MAX_LISTED)
    throw invalidRequest(`page: only the newest ${MAX_LISTED} memories have pages; use /memories`);
  const items: WireMemory[] = [];
  let [position, bytes] = [0, 0];
  for await (const { found, seen } of pagesOf(c, entity, UNMARKED)) {
    for (const memory of found) {
      if (items.length === most) return { items, more: true };
      if (position++ < skip) continue;
      items.push(memory);
      bytes += JSON.stringify(memory).length;
      if (bytes > MAX_PAGE_JSON_BYTES) {
        throw invalidRequest(`the memories take more than ${MAX_PAGE_JSON_BYTES} bytes; ask for fewer at once`);
      }
    }
    if (seen > MAX_LISTED) throw tooManyOthers();
  }
  return { items, more: false };
}

/** Null: the store does not count them. */
export async function countOf(
  c: Context<Env>,
  entity: Entity,
  { description: { features } }: Described,
): Promise<number | null> {
  if (!('stats' in features && features.stats)) return null;
  const { user_id, agent, run: run_id } = entity;
  const { count, scopes } = await run(c, VERB_TABLE.stats, { user_id });
  if (agent === undefined && run_id === undefined) return count;
  const sum = (some: typeof scopes) => some.reduce((total, one) => total + one.count, 0);
  // Of many scopes, only the largest are counted.
  return sum(scopes) === count ? sum(scopes.filter((one) => isOf(entity, one))) : null;
}

/** Deletes the memories of an entity. Throws if there may be some left. */
export async function deleteAllOf(
  c: Context<Env>,
  entity: Entity,
  { description: { features } }: Described,
): Promise<void> {
  const seesAll = isAllowed({ read: 'all', delete: 'all', trusted: true }, c.get('principal'));
  const isUser = entity.agent === undefined && entity.run === undefined;
  if (isUser && seesAll && 'erase' in features && features.erase)
    await run(c, VERB_TABLE.erase, { id: entity.user_id });
  else await deleteEach(c, entity);
  requireWhole(c);
}

/** Throws if a store did not say which memories it has. */
function requireWhole(c: Context<Env>): void {
  const { leftOut } = c.get('call');
  const [provider] = Object.values(leftOut ?? {}).flat();
  if (provider === undefined) return;
  throw new OmpError('provider_error', 'a store could not be read, so some memories may not be deleted', { provider });
}

interface EntityPage {
  readonly found: WireMemory[];
  /** How many memories were looked at so far. */
  readonly seen: number;
  readonly more: boolean;
}

async function* pagesOf(c: Context<Env>, entity: Entity, trust = {}): AsyncGenerator<EntityPage> {
  const query = { ...trust, user_id: entity.user_id, limit: PAGE, scope: mem0Scope(entity, '*') ?? undefined };
  let seen = 0;
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const { items, next_cursor } = await run(c, VERB_TABLE.list, { ...query, cursor });
    cursor = next_cursor;
    seen += items.length;
    // The glob crosses slashes, so it also finds scopes of others that only end like these.
    yield { found: items.filter((memory) => isOf(entity, memory)), seen, more: cursor !== null };
  }
}

const tooManyOthers = () =>
  invalidRequest(
    `run_id: among the newest ${MAX_LISTED} memories whose scope looks like it are too many others; use /memories`,
  );

/** Deletes at most about `MAX_LISTED`, so that the request ends in time, and throws if there may be more. */
async function deleteEach(c: Context<Env>, entity: Entity): Promise<void> {
  let deleted = 0;
  for await (const { found, seen, more } of pagesOf(c, entity)) {
    for (let at = 0; at < found.length; at += TOGETHER)
      await Promise.all(
        found.slice(at, at + TOGETHER).map(({ id }) => unlessAbsent(run(c, VERB_TABLE.delete, { id }))),
      );
    deleted += found.length;
    if (more && seen > deleted + MAX_LISTED) throw tooManyOthers();
    if (more && deleted >= MAX_LISTED)
      throw new OmpError('rate_limited', `deleted ${deleted} memories, and there are more; call again`, {
        retryAfter: 1,
      });
  }
}

export const unlessAbsent = <Result>(work: Promise<Result>): Promise<Result | undefined> =>
  work.catch((error: unknown) => {
    if (error instanceof OmpError && error.code === 'not_found') return undefined;
    throw error;
  });

/**
 * What a memory supersedes in its scope, directly or through others, in the order in which it can be deleted: if that fails on the way, what is
 * left is superseded still. Whoever may write one scope alone must not have a memory of another one deleted by somebody who may.
 */
export async function linkedTo(c: Context<Env>, id: string): Promise<string[]> {
  const seen = new Set([id]);
  const linked: string[] = [];
  const follow = async (memory: WireMemory): Promise<void> => {
    // What an untrusted key wrote supersedes nothing.
    for (const older of isMarked(memory) ? [] : memory.supersedes) {
      if (seen.has(older)) continue;
      if (seen.size > MAX_LINKED)
        throw invalidRequest(`delete_linked: more than ${MAX_LINKED} memories; delete older ones first`);
      seen.add(older);
      const found = await unlessAbsent(run(c, VERB_TABLE.get, { id: older }));
      if (found?.user_id !== memory.user_id || found.scope !== memory.scope) continue;
      await follow(found);
      linked.push(older);
    }
  };
  await follow(await run(c, VERB_TABLE.get, { id }));
  return linked;
}

/** Answers of mem0 have no place for the mark of an untrusted key, so none has what is marked. */
export const UNMARKED = { untrusted: false };
export const isMarked = (memory: WireMemory): boolean =>
  (memory as WireMemory & Record<string, unknown>)[UNTRUSTED] === true;

const SCOPE = /^mem0\/agent\/([^/]+)\/run\/([^/]+)$/;
/** Agent and run of a scope. Another application may have written any scope, also one that is no encoding of texts. */
export function partsOf({ scope }: Pick<WireMemory, 'scope'>): { agent: string | null; run: string | null } {
  const [, agent = '-', run = '-'] = SCOPE.exec(scope ?? '') ?? [];
  const decode = (text: string) => (text === '-' ? null : decodeURIComponent(text));
  try {
    return { agent: decode(agent), run: decode(run) };
  } catch {
    return { agent: null, run: null };
  }
}

export function isOf({ agent, run }: Entity, memory: Pick<WireMemory, 'scope'>): boolean {
  const parts = partsOf(memory);
  return (agent === undefined || parts.agent === agent) && (run === undefined || parts.run === run);
}
