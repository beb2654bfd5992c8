import { afterEach, describe, expect, it } from 'vitest';
import type { Provider, SearchHit } from '#contract';
import { openSubject, type Subject } from '../support/subject.ts';
import { checkAgreement } from './check.ts';

type Verbs = Required<Provider>;
type Fault = (verbs: Verbs) => Partial<Provider>;

const laterBy = (time: string, milliseconds: number): string => new Date(Date.parse(time) + milliseconds).toISOString();
const changedHits = (
  { search }: Verbs,
  change: (hits: SearchHit[], scope?: string) => SearchHit[],
): Partial<Provider> => ({
  search: async (query, call) => change(await search(query, call), query.scope),
});

/** One mistake each, of the kind a store might make: the memory provider with a single verb bent. */
const FAULTS: Readonly<Record<string, Fault>> = {
  'since is exclusive': ({ list }) => ({
    list: ({ since, ...query }, call) => list({ ...query, ...(since && { since: laterBy(since, 1) }) }, call),
  }),
  'a page begins one record late': ({ list }) => ({
    list: async (query, call) => (await list(query, call)).slice(query.after ? 1 : 0),
  }),
  'tags ignore case': ({ list }) => ({
    list: (query, call) => list({ ...query, tags: query.tags.map((tag) => tag.toLowerCase()) }, call),
  }),
  'a glob ends at a slash': ({ list }) => ({
    list: async (query, call) =>
      (await list(query, call)).filter(
        ({ scope }) => scope?.split('/').length === query.scope?.split('/').length || !query.scope,
      ),
  }),
  'equal scores come oldest first': (verbs) =>
    changedHits(verbs, (hits) => hits.toReversed().sort((a, b) => b.score - a.score)),
  'scores are rounded': (verbs) =>
    changedHits(verbs, (hits) => hits.map((hit) => ({ ...hit, score: Math.round(hit.score * 100) / 100 }))),
  'the last hit is lost': (verbs) => changedHits(verbs, (hits) => hits.slice(0, -1)),
  'a prefix ends at a segment': (verbs) =>
    changedHits(verbs, (hits, prefix) =>
      hits.filter(({ memory }) => prefix === undefined || `${memory.scope}/`.startsWith(`${prefix}/`)),
    ),
  'a patch always moves updated_at': ({ update }) => ({
    update: async (ref, patch, call) => {
      const memory = await update(ref, patch, call);
      return memory && { ...memory, updated_at: laterBy(memory.updated_at, 1) };
    },
  }),
  'a patch drops the expiry': ({ update }) => ({
    update: (ref, patch, call) => update(ref, { ...patch, valid_to: null }, call),
  }),
  'delete does not look at the owner': ({ delete: remove }) => ({ delete: ({ id }, call) => remove({ id }, call) }),
  'a deleted record is still read': ({ delete: remove, get }) => ({
    delete: async (ref, call) => (await get(ref, call)) !== undefined || remove(ref, call),
  }),
};

/** Guards the guard: a comparison that lets a wrong store pass would be worth nothing. */
describe('the comparison notices a store that answers differently', () => {
  const opened: Subject[] = [];
  afterEach(async () => {
    for (const subject of opened.splice(0)) await subject.close();
  });
  const open = async (fault?: Fault) => {
    const alter = (provider: Provider): Provider => (fault ? { ...provider, ...fault(provider as Verbs) } : provider);
    const subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, alter });
    opened.push(subject);
    return subject;
  };

  it.for(Object.keys(FAULTS))('[SPEC Service capabilities] %s', async (name) => {
    const model = { label: 'memory', subject: await open() };
    const faulty = { label: name, subject: await open(FAULTS[name]) };
    const checked = checkAgreement(model, [faulty], { runs: 100, seed: 1, shrink: false });
    await expect(checked).rejects.toThrow(/Property failed/);
  });

  it('[SPEC Service capabilities] and lets a store without a fault pass', async () => {
    const same = { label: 'the same', subject: await open() };
    await checkAgreement({ label: 'memory', subject: await open() }, [same], { runs: 10, seed: 1, shrink: false });
  });
});
