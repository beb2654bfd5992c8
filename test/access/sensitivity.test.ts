import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { globMatcher, type Provider, type Within, withinMatcher } from '#contract';
import { openSubject, type Subject } from '../support/subject.ts';
import { type Backdoor, openBackdoor } from './callers.ts';
import type { Key } from './rule.ts';
import { checkSequence, plot } from './sequences.ts';
import { checkView, scene } from './view.ts';

type Verbs = Required<Provider>;
interface Fault {
  /** A mistake of the provider. */
  readonly alter?: (verbs: Verbs) => Partial<Provider>;
  /** A mistake of who judges: another key than the one that was given. */
  readonly mistake?: (key: Key) => Key;
}

const regrant =
  (change: (grant: string) => string) =>
  (key: Key): Key => ({ ...key, grants: key.grants.map(change) });
const inside = (within: Within) => withinMatcher(within);

/** What shows when somebody looks. */
const SEEN: Readonly<Record<string, Fault>> = {
  'rarity counts what is hidden': {
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
  'entries of unscoped records are seen by everybody': {
    alter: ({ audit }) => ({
      audit: { ...audit, read: (query, call) => audit.read({ ...query, within: null }, call) },
    }),
  },
  'a grant covers its neighbours': { mistake: regrant((grant) => grant.replace(/\/\*$/, '*')) },
  'every grant covers unscoped records': { mistake: (key) => ({ ...key, grants: [...key.grants, 'read:*'] }) },
  'the binding is forgotten': { mistake: (key) => ({ ...key, users: null }) },
};

/** What shows when somebody tries. */
const DONE: Readonly<Record<string, Fault>> = {
  'delete does not look at the scope': {
    alter: ({ delete: remove }) => ({ delete: (ref, call) => remove({ ...ref, within: null }, call) }),
  },
  'delete does not look at the owner': {
    alter: ({ delete: remove }) => ({ delete: (ref, call) => remove({ ...ref, users: null }, call) }),
  },
  'an update that is refused is made all the same': {
    alter: ({ update }) => ({
      async update(ref, patch, vector, call) {
        const allowed = await update(ref, patch, vector, call);
        if (!allowed) await update({ ...ref, within: null }, patch, vector, call);
        return allowed;
      },
    }),
  },
  'a refused update moves updated_at': {
    alter: ({ update }) => ({
      async update(ref, patch, vector, call) {
        const allowed = await update(ref, patch, vector, call);
        if (!allowed) await update({ ...ref, within: null, users: null }, { confidence: 0.5 }, null, call);
        return allowed;
      },
    }),
  },
  'whoever may delete may write': { mistake: regrant((grant) => grant.replace(/^delete:/, '*:')) },
  'whoever may write may read': { mistake: regrant((grant) => grant.replace(/^write:/, '*:')) },
  'the binding is forgotten': { mistake: (key) => ({ ...key, users: null }) },
};

/** Guards the guards: checks that let a wrong gateway pass would be worth nothing. */
describe('the random checks notice a gateway that gives too much or too little', () => {
  const opened: Subject[] = [];
  afterEach(async () => {
    for (const subject of opened.splice(0)) await subject.close();
  });
  const openWith = async ({ alter, mistake = (key) => key }: Fault): Promise<{ subject: Subject; door: Backdoor }> => {
    const door = openBackdoor();
    const subject = await openSubject({
      provider: 'memory',
      options: { scopes: 'native' },
      authenticator: door.authenticator,
      ...(alter && { alter: (provider: Provider) => ({ ...provider, ...alter(provider as Verbs) }) }),
    });
    opened.push(subject);
    return { subject, door: { ...door, admit: (app, key) => door.admit(app, key && mistake(key)) } };
  };
  const options = { numRuns: 200, seed: 1, endOnFailure: true };

  it.for(Object.keys(SEEN))('[Decision 14] what is seen: %s', async (name) => {
    const { subject, door } = await openWith(SEEN[name] ?? {});
    const seen = { records: 0, hidden: 0, refused: 0, entries: 0 };
    const stores = { whole: subject, part: subject, door, seen };
    const checked = fc.assert(
      fc.asyncProperty(scene, (drawn) => checkView(drawn, stores)),
      options,
    );
    await expect(checked).rejects.toThrow(/Property failed/);
  });

  it.for(Object.keys(DONE))('[Decision 14] what is done: %s', async (name) => {
    const stage = { ...(await openWith(DONE[name] ?? {})), seen: { changed: 0, refused: 0, outside: 0, revealed: 0 } };
    const checked = fc.assert(
      fc.asyncProperty(plot, (drawn) => checkSequence(drawn, stage)),
      options,
    );
    await expect(checked).rejects.toThrow(/Property failed/);
  });
});
