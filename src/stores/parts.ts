import { type Call, type Consistency, type Embedder, OmpError, type Within } from '#contract';
import { globsOverlap, hasWildcard, isAtOrBelow, literalPrefix, withinBelow } from '#toolbox';
import type { MountedStore, Store } from '../core/store.ts';
import { atMount, hiding } from './at-mount.ts';

/*
 * The stores of a gateway side by side (Decision 48). `optional.ts` asks several at once.
 */

/** One of the stores. */
export interface Part {
  /** The name in answers and errors. */
  readonly name: string;
  /** The place in the fixed order of stores; the root store is 0. */
  readonly index: number;
  /** Undefined: the root store. */
  readonly mount: string | undefined;
  readonly required: boolean;
  readonly weight: number;
  readonly embedder: Embedder | undefined;
  /** In the names of the gateway. */
  readonly store: Store;
  /** Whether a query can find a record here. `scopes`: the globs that it asks for, null for all. */
  sees(within: Within, scopes: Within): boolean;
}

/** A part whose store has this member. */
export type PartWith<Member extends keyof Store> = Part & { readonly store: Required<Pick<Store, Member>> };

export function partsOf(root: Store, embedder: Embedder | undefined, mounted: readonly MountedStore[]): Part[] {
  const mounts = mounted.map(({ mount }) => mount);
  return [
    {
      name: root.name,
      index: 0,
      mount: undefined,
      required: true,
      weight: 1,
      embedder,
      store: hiding(root, mounts),
      sees(within, scopes) {
        if (root.capabilities.scopes === 'none') return within === null && scopes === null;
        const shown = (globs: Within) =>
          globs === null ? null : globs.filter((glob) => !mounts.some((top) => isBelow(glob, top)));
        return meet(shown(within), shown(scopes));
      },
    },
    ...mounted.map((one, at) => mountedPart(one, at + 1)),
  ];
}

function mountedPart(one: MountedStore, index: number): Part {
  const { mount } = one;
  let inner = one.current();
  let store = atMount(inner, one);
  return {
    ...one,
    index,
    get embedder() {
      return one.embedder;
    },
    get store() {
      if (one.current() === inner) return store;
      inner = one.current();
      store = atMount(inner, one);
      return store;
    },
    sees(within, scopes) {
      const [allowed, asked] = [withinBelow(within, mount), withinBelow(scopes, mount)];
      if (inner.capabilities.scopes !== 'none') return meet(allowed, asked);
      return [allowed, asked].every((globs) => globs === null || globs.includes(''));
    },
  };
}

/** Whether everything that a glob matches is at this scope or below. */
const isBelow = (glob: string, top: string): boolean =>
  hasWildcard(glob) ? literalPrefix(glob).startsWith(`${top}/`) : isAtOrBelow(glob, top);

/** Whether a record may be in both. The empty glob matches nothing but records without a scope. */
function meet(a: Within, b: Within): boolean {
  if (a === null || b === null) return (a ?? b)?.length !== 0;
  return a.some((one) => b.some((other) => (one === '' || other === '' ? one === other : globsOverlap(one, other))));
}

/** What the members of a store are called in messages. */
const VERB_OF: Partial<Record<keyof Store, string>> = { userStats: 'stats', freezing: 'freeze' };

export function lacking({ name, store }: Part, member: keyof Store): OmpError {
  const verb = VERB_OF[member] ?? member;
  const reason = store.read_only ? `: ${store.read_only}` : '';
  return new OmpError('unsupported_capability', `the store ${name} does not support ${verb}${reason}`, {
    provider: name,
  });
}

/** The part; throws `unsupported_capability` if its store lacks the method. */
export function withMember<Member extends keyof Store>(part: Part, member: Member): PartWith<Member> {
  if (part.store[member] === undefined) throw lacking(part, member);
  return part as PartWith<Member>;
}

interface Scopes {
  readonly within: Within;
  /** The globs that the query asks for; default: all. */
  readonly scopes?: Within;
}

/**
 * The parts where a query can find a record. The answer names those without the method (Decision 49); throws
 * `unsupported_capability` if no other is left.
 */
export function partsWith<Member extends keyof Store>(
  parts: readonly Part[],
  member: Member,
  { within, scopes = null }: Scopes,
  call: Call,
): PartWith<Member>[] {
  const seen = parts.filter((part) => part.sees(within, scopes));
  const able = seen.filter(({ store }) => store[member] !== undefined);
  for (const part of seen) {
    if (able.length === 0) throw lacking(part, member);
    if (part.store[member] === undefined) call.leaveOut('x-without', part.name);
  }
  return able as PartWith<Member>[];
}

/** The tokens of the stores in the token of a client, by name; that of the root store has the empty one. */
const tokensOf = new WeakMap<Consistency, Map<string, string>>();
/** Maximum characters of a token that the gateway reads. */
const MAX_TOKEN_LENGTH = 1_024;

/** The call as one store gets it: with its own consistency token. */
export function callOf({ mount, name, store }: Part, call: Call): Call {
  const { consistency } = call;
  if (!consistency || !store.capabilities.consistency_tokens) return call;
  const key = mount === undefined ? '' : name;
  const tokens = tokensOf.get(consistency) ?? readTokens(consistency.token);
  tokensOf.set(consistency, tokens);
  return call.with({
    consistency: {
      token: tokens.get(key),
      answer(token) {
        tokens.delete(key);
        tokens.set(key, token);
        consistency.answer(writeTokens(tokens));
      },
      behind: () => consistency.behind(),
    },
  });
}

/** The token of the root store alone stays as it is. If they are too long, the oldest writes are left out. */
function writeTokens(tokens: Map<string, string>): string {
  const [first] = tokens;
  if (tokens.size === 1 && first?.[0] === '') return first[1];
  const text = Buffer.from(JSON.stringify([...tokens])).toString('base64url');
  if (text.length <= MAX_TOKEN_LENGTH || !first) return text;
  tokens.delete(first[0]);
  return writeTokens(tokens);
}

function readTokens(token: string | undefined): Map<string, string> {
  if (token === undefined) return new Map();
  try {
    const entries: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (Array.isArray(entries) && entries.every(isNamedToken)) return new Map(entries);
  } catch {
    // A token of the root store is no JSON.
  }
  return new Map([['', token]]);
}

const isNamedToken = (entry: unknown): entry is [string, string] =>
  Array.isArray(entry) && entry.length === 2 && entry.every((text) => typeof text === 'string');
