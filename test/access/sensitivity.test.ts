import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { Provider, Within } from '#contract';
import { globMatcher, withinMatcher } from '#toolbox';
import { openSubject, type Subject } from '../support/subject.ts';
import { checkKey, openBench } from './bench.ts';
import { bearer, openBackdoor } from './callers.ts';
import type { Key } from './rule.ts';
import { checkView, scene } from './view.ts';

type Verbs = Required<Provider>;
interface Fault {
  /** A mistake of the provider. */
  readonly alter?: (verbs: Verbs) => Partial<Provider>;
  /** A mistake of the decision: it takes the key for another one. */
  readonly mistake?: (key: Key) => Key;
}

const regrant =
  (change: (grant: string) => string) =>
  (key: Key): Key => ({ ...key, grants: key.grants.map(change) });
const inside = (within: Within) => withinMatcher(within);

/** Mistakes that show in what a key sees. */
const SEEN: Readonly<Record<string, Fault>> = {
  'rarity counts hidden records': {
    alter: ({ search }) => ({
      search: async ({ within, limit, ...query }, call) =>
        (await search({ ...query, within: null, limit: 10_000 }, call))
          .filter(({ memory }) => inside(within)(memory.scope))
          .slice(0, limit),
    }),
  },
  'a list is cut before it is filtered': {
    alter: ({ list }) => ({
      list: async ({ within, ...query }, call) =>
        (await list({ ...query, within: null }, call)).filter(({ scope }) => inside(within)(scope)),
    }),
  },
  'only the first glob counts': {
    alter: ({ list }) => ({
      list: ({ within, ...query }, call) => list({ ...query, within: within?.slice(0, 1) ?? null }, call),
    }),
  },
  'a glob stops at a slash': {
    alter: ({ list }) => ({
      list: async (query, call) =>
        (await list(query, call)).filter(
          ({ scope }) =>
            query.within === null ||
            query.within.some(
              (glob) => globMatcher(glob)(scope ?? '') && glob.split('/').length >= (scope ?? '').split('/').length,
            ),
        ),
    }),
  },
  'everybody sees the audit entries of unscoped records': {
    alter: ({ audit }) => ({
      audit: { ...audit, read: (query, call) => audit.read({ ...query, within: null }, call) },
    }),
  },
  'a grant covers its neighbours': { mistake: regrant((grant) => grant.replace(/\/\*$/, '*')) },
  'every grant covers unscoped records': { mistake: (key) => ({ ...key, grants: [...key.grants, 'read:*'] }) },
  'the binding is forgotten': { mistake: (key) => ({ ...key, users: null }) },
};

/** Mistakes that show in what a key can do. */
const DONE: Readonly<Record<string, Fault>> = {
  'delete ignores the scope': {
    alter: ({ delete: remove }) => ({ delete: (ref, call) => remove({ ...ref, within: null }, call) }),
  },
  'delete ignores the owner': {
    alter: ({ delete: remove }) => ({ delete: (ref, call) => remove({ ...ref, users: null }, call) }),
  },
  'a refused update is applied': {
    alter: ({ update }) => ({
      async update(request, call) {
        const allowed = await update(request, call);
        if (!allowed) await update({ ...request, ref: { ...request.ref, within: null } }, call);
        return allowed;
      },
    }),
  },
  'a refused update moves updated_at': {
    alter: ({ update }) => ({
      async update(request, call) {
        const allowed = await update(request, call);
        const ref = { ...request.ref, within: null, users: null };
        if (!allowed) await update({ ref, patch: { confidence: 0.5 }, vector: null }, call);
        return allowed;
      },
    }),
  },
  'update ignores the version': {
    alter: ({ update }) => ({
      update: ({ ref, ...rest }, call) => update({ ...rest, ref: { ...ref, versions: undefined } }, call),
    }),
  },
  'delete ignores the version': {
    alter: ({ delete: remove }) => ({ delete: (ref, call) => remove({ ...ref, versions: undefined }, call) }),
  },
  'delete implies write': { mistake: regrant((grant) => grant.replace(/^delete:/, '*:')) },
  'read implies delete': { mistake: regrant((grant) => grant.replace(/^read:/, '*:')) },
  'write implies read': { mistake: regrant((grant) => grant.replace(/^write:/, '*:')) },
  'the binding is forgotten': { mistake: (key) => ({ ...key, users: null }) },
};

const altered =
  ({ alter }: Fault) =>
  (provider: Provider): Provider => ({ ...provider, ...alter?.(provider as Verbs) });

/** Checks that let a wrong gateway pass would be worth nothing. */
describe('the access checks notice a gateway that gives too much or too little', () => {
  let subject: Subject | undefined;
  afterEach(() => subject?.close());
  const memory = { provider: 'memory', options: { scopes: 'native' } } as const;

  it.for(Object.entries(SEEN))('[Decision 14] what a key sees: %s', async ([, fault]) => {
    const door = openBackdoor();
    subject = await openSubject({ ...memory, authenticator: door.authenticator, alter: altered(fault) });
    const { mistake = (key) => key } = fault;
    const wrongDoor = { ...door, admit: (app: string, key?: Key) => door.admit(app, key && mistake(key)) };
    const seen = { records: 0, hidden: 0, refused: 0, entries: 0 };
    const stores = { whole: subject, part: subject, door: wrongDoor, seen };
    const checked = fc.assert(
      fc.asyncProperty(scene, (drawn) => checkView(drawn, stores)),
      { numRuns: 200, seed: 1, endOnFailure: true },
    );
    await expect(checked).rejects.toThrow(/Property failed/);
  });

  it.for(Object.entries(DONE))('[Decision 14] what a key can do: %s', async ([, fault]) => {
    const bench = await openBench((options) => openSubject({ ...memory, ...options }), altered(fault));
    subject = bench.subject;
    const { mistake = (key) => key } = fault;
    const checkAll = async () => {
      for (const grants of [['*:coding/*'], ['read:*'], ['write:*'], ['delete:*']]) {
        const key: Key = { grants, users: ['ana'] };
        await checkKey(key, bench.subject.as(bearer(bench.door.admit('key', mistake(key)))), bench);
      }
    };
    await expect(checkAll()).rejects.toThrow(/wrong for key/);
  });
});
