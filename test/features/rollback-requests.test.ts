import { describe, expect, it } from 'vitest';
import { type Memory, OmpError, type Provider } from '#contract';
import { ALL_GRANTS, type Principal } from '../../src/core/grants.ts';
import { VERB_TABLE } from '../../src/verbs/index.ts';
import { call, contextOf, listOf, memoryOf, openMemory, refTo } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { gateOn, recordingLog } from '../support/subject.ts';
import type { WireRollback } from '../support/wire.ts';

const SINCE = '2001-01-01';
const { add, update, rollback } = VERB_TABLE;
type Full = Required<Provider>;

/** A gateway on the memory provider with these changes; `poison` adds a memory by one key and changes it by another. */
async function open(change: (provider: Full, act: () => Promise<void>) => Partial<Provider> = () => ({})) {
  const versions = { max: 100, retention_days: null };
  const memory = await openMemory('native', contextOf({ versions }));
  const pending: (() => Promise<unknown>)[] = [];
  /** Does what is next to happen, as another gateway would. */
  const act = async () => void (await pending.shift()?.());
  const { gate } = gateOn(storeOf({ ...memory, ...change(memory, act) }), recordingLog());
  const callers = new Map<string, Principal>();
  const by = (app: string, more: Partial<Principal> = {}) => {
    const known = callers.get(app) ?? { id: `key:${app}`, app, users: null, grants: ALL_GRANTS, ...more };
    callers.set(app, known);
    return gate.session(known, 'http');
  };
  const added = (app: string, content: string) =>
    by(app).run(add, { memory: { user_id: 'u', content } }, call) as unknown as Promise<Memory>;
  const changed = (app: string, id: string, content: string) => by(app).run(update, { id, patch: { content } }, call);
  const undone = async (input: object = {}, more: Partial<Principal> = {}) => {
    const answer = await by('operator', more).run(rollback, { id: 'u', since: SINCE, key: 'bad', ...input }, call);
    return (answer as unknown as WireRollback).items
      .filter(({ action }) => action !== 'deleted')
      .map(({ action, reason, version }) => reason ?? version ?? action);
  };
  const contents = async () => (await memory.list(listOf('u'), call)).map(({ content }) => content).sort();
  return { memory, pending, added, changed, undone, contents };
}

/** Something happens between the look at a memory and the step that undoes it. */
const between = () =>
  open(({ update: change, delete: remove }, act) => ({
    update: async (request, own) => {
      if (request.ref.versions) await act();
      return change(request, own);
    },
    delete: async (ref, own) => {
      if (ref.versions) await act();
      return remove(ref, own);
    },
  }));

describe('[Decision 56] a memory that is changed between the look and the step', () => {
  it.for([
    { title: 'by somebody else is kept', by: 'good', outcome: 'changed_since', content: 'later' },
    { title: 'by the same caller is restored', by: 'bad', outcome: 1, content: 'true' },
  ])('$title', async ({ by, outcome, content }) => {
    const { pending, added, changed, undone, contents } = await between();
    const { id } = await added('good', 'true');
    await changed('bad', id, 'poison');
    pending.push(() => changed(by, id, 'later'));
    expect(await undone()).toEqual([outcome]);
    expect(await contents()).toEqual([content]);
  });

  it.for([
    { by: 'good', outcome: ['changed_since'], contents: ['later'] },
    { by: 'bad', outcome: ['delete'], contents: [] },
  ])('is deleted only if it is still of that caller: $by', async ({ by, outcome, contents: due }) => {
    const { pending, added, changed, undone, contents } = await between();
    const { id } = await added('bad', 'poison');
    pending.push(() => changed(by, id, 'later'));
    expect(await undone()).toEqual(outcome);
    expect(await contents()).toEqual(due);
  });

  it('again and again is kept in the end, and the others are undone', async () => {
    const { pending, added, changed, undone, contents } = await between();
    const { id } = await added('good', 'true');
    await changed('bad', id, 'poison');
    await added('bad', 'more poison');
    for (let n = 0; n < 5; n++) pending.push(() => changed('bad', id, `poison ${n}`));
    expect(await undone()).toEqual(['changed_since', 'delete']);
    expect(await contents()).toEqual(['poison 4']);
    expect(await undone()).toEqual([1]);
  });

  it('or deleted is none of its items', async () => {
    const { memory, pending, added, undone } = await between();
    const { id } = await added('bad', 'poison');
    pending.push(() => memory.delete(refTo(id), call));
    expect(await undone()).toEqual([]);
  });
});

describe('[Decision 56] a rollback', () => {
  it('is not for an untrusted caller, not even to look', async () => {
    const { added, undone, contents } = await open();
    await added('bad', 'poison');
    for (const dry_run of [true, false]) {
      await expect(undone({ dry_run }, { untrusted: true })).rejects.toMatchObject({ code: 'scope_denied' });
    }
    expect(await contents()).toEqual(['poison']);
  });

  it('keeps a memory whose version the store rejects, and goes on with the others', async () => {
    const { added, changed, undone, contents } = await open(({ update: change }) => ({
      async update(request, own) {
        if (request.patch.content === 'too long') throw new OmpError('payload_too_large', 'too long');
        return change(request, own);
      },
    }));
    const [first, second] = [await added('good', 'too long'), await added('good', 'true')];
    for (const { id } of [first, second]) await changed('bad', id, 'poison');
    expect(await undone()).toEqual(['rejected', 1]);
    expect(await contents()).toEqual(['poison', 'true']);
  });

  it('fails with the backend, and goes on when it is repeated', async () => {
    let failures = 0;
    const { added, undone, contents } = await open(({ delete: remove }) => ({
      async delete(ref, own) {
        if (failures++ === 1) throw new OmpError('provider_error', 'it does not answer');
        return remove(ref, own);
      },
    }));
    for (let n = 0; n < 3; n++) await added('bad', `poison ${n}`);
    await expect(undone()).rejects.toMatchObject({ code: 'provider_error' });
    expect(await contents()).toHaveLength(2);
    expect(await undone()).toEqual(['delete', 'delete']);
    expect(await contents()).toEqual([]);
  });

  it('keeps a memory whose versions were purged', async () => {
    const { memory, added, changed, undone, contents } = await open();
    const { id } = await added('good', 'true');
    await changed('bad', id, 'poison');
    await memory.versions.purge(refTo(id), call);
    expect(await undone()).toEqual(['no_version']);
    expect(await contents()).toEqual(['poison']);
  });

  it('keeps a memory whose version before builds on what is to be undone', async () => {
    const { changed, added, undone, contents } = await open();
    const { id } = await added('good', 'true');
    await changed('bad', id, 'poison');
    await changed('good', id, 'poison, spelt well');
    await changed('bad', id, 'more poison');
    expect(await undone()).toEqual(['changed_since']);
    expect(await contents()).toEqual(['more poison']);
  });

  it('gives a memory the mark of the version that it brings back', async () => {
    const { memory, undone } = await open();
    const input = memoryOf('u', 'read on a page', {
      extensions: { 'x-omp-untrusted': true, 'x-omp-origin': { key: 'good', via: 'http' } },
    });
    const { id } = (await memory.add({ input, vector: null }, call)) as Memory;
    const patch = {
      content: 'poison',
      extensions: { 'x-omp-untrusted': null, 'x-omp-origin': { key: 'bad', via: 'http' } },
    };
    await memory.update({ ref: refTo(id), patch, vector: null }, call);
    expect(await undone()).toEqual([1]);
    expect((await memory.get(refTo(id), call))?.extensions).toEqual({
      'x-omp-untrusted': true,
      'x-omp-origin': { key: 'operator', via: 'rollback', version: 1 },
    });
  });
});
