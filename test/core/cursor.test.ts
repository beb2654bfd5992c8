import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KeyStore, OmpError, Position } from '#contract';
import { newIdentity } from '#toolbox';
import { cursorKind } from '../../src/core/cursor.ts';
import { ALL_GRANTS, ANONYMOUS } from '../../src/core/grants.ts';
import { VERB_TABLE } from '../../src/verbs/index.ts';
import type { Verb } from '../../src/verbs/verb.ts';
import { call, memoryOf, openMemory } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { gateOn, recordingLog, VERSIONED } from '../support/subject.ts';

const text = fc.string({ unit: 'grapheme', maxLength: 256 });
const time = fc
  .date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
  .map((date) => date.toISOString());
const filters = fc.record(
  { user_id: text, tags: fc.array(text, { maxLength: 1 }), scope: text, since: time, until: time },
  { requiredKeys: ['user_id', 'tags'] },
);
const id = fc.oneof(
  fc.constantFrom(newIdentity().id, `mem_${'7'.repeat(26)}`),
  fc.uuid(),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
);

const Plain = cursorKind<Position>(undefined, { position: (last) => last, place: (position) => position });
const encodeCursor = (last: Position, asked: object) => Plain.write(last, { ...asked }) as string;
const decodeCursor = (cursor: string, asked: object) => Plain.read(cursor, { ...asked }) as Position;
const refusal = (cursor: string, asked: object): string => {
  try {
    decodeCursor(cursor, asked);
  } catch (error) {
    expect((error as OmpError).code).toBe('invalid_request');
    return (error as OmpError).message;
  }
  return expect.fail('the cursor was taken');
};
const MALFORMED = /^cursor: malformed/;
const plain = { user_id: 'u', tags: [] };
const forged = (content: unknown): string => Buffer.from(JSON.stringify(content)).toString('base64url');
const contentOf = (cursor: string): unknown[] => JSON.parse(Buffer.from(cursor, 'base64url').toString());

describe('a cursor', () => {
  it('decodes with the filters that it was made for', () => {
    fc.assert(
      fc.property(filters, time, id, (asked, created_at, last) => {
        const cursor = encodeCursor({ created_at, id: last }, asked);
        expect(decodeCursor(cursor, structuredClone(asked))).toEqual({ created_at, id: last });
      }),
    );
  });

  it('is URL-safe and has at most 256 characters for ids of the gateway', () => {
    const longest = { created_at: '9999-12-31T23:59:59.999Z', id: newIdentity().id };
    const asked = {
      user_id: 'u'.repeat(256),
      tags: ['t'.repeat(128)],
      scope: '😀'.repeat(512),
      since: longest.created_at,
    };
    const cursor = encodeCursor(longest, asked);
    expect(cursor).toMatch(/^[A-Za-z0-9_-]{1,256}$/);
    // Foreign ids of a mapped table may be longer: UUIDs and the like fit as well.
    expect(encodeCursor({ ...longest, id: 'x'.repeat(128) }, asked).length).toBeLessThanOrEqual(256);
  });

  it('decodes with the longest id of a user', () => {
    const longest = { created_at: '9999-12-31T23:59:59.999Z', id: '😀'.repeat(256) };
    expect(decodeCursor(encodeCursor(longest, plain), plain)).toEqual(longest);
    expect(refusal(encodeCursor({ ...longest, id: 'x'.repeat(3_600) }, plain), plain)).toMatch(MALFORMED);
  });

  it('contains neither the user nor the filters', () => {
    const asked = { user_id: 'somebody-in-particular', tags: ['a-secret-tag'], scope: 'a/secret/scope' };
    const cursor = encodeCursor({ created_at: new Date(0).toISOString(), id: 'mem_1' }, asked);
    expect(Buffer.from(cursor, 'base64url').toString()).not.toMatch(/somebody|secret/);
  });

  it('is rejected with other filters', () => {
    fc.assert(
      fc.property(filters, filters, (made, asked) => {
        fc.pre(JSON.stringify(made) !== JSON.stringify(asked));
        const cursor = encodeCursor({ created_at: new Date(0).toISOString(), id: 'mem_1' }, made);
        expect(refusal(cursor, asked)).toMatch(/another user or other filters/);
      }),
    );
  });

  it('distinguishes filters with the same concatenation', () => {
    const position = { created_at: new Date(0).toISOString(), id: 'mem_1' };
    const alike = [
      { user_id: 'u', tags: [], scope: 'x' },
      { user_id: 'u', tags: ['x'] },
      { user_id: 'ux', tags: [] },
      { user_id: 'u', tags: [], since: 'x' },
      { user_id: 'u', tags: [], until: 'x' },
      { user_id: 'u', tags: [], scope: 'null' },
      { user_id: 'u', tags: [] },
    ];
    for (const made of alike) {
      for (const asked of alike) {
        if (made !== asked) expect(refusal(encodeCursor(position, made), asked)).toMatch(/other filters/);
      }
    }
  });

  it('that was edited is rejected or names another position', () => {
    const position = { created_at: '2024-05-06T07:08:09.010Z', id: newIdentity().id };
    const cursor = encodeCursor(position, plain);
    fc.assert(
      fc.property(fc.nat(cursor.length - 1), fc.constantFrom(...'ABCxyz059_-=+/. é'), (at, character) => {
        const tampered = cursor.slice(0, at) + character + cursor.slice(at + 1);
        fc.pre(tampered !== cursor);
        try {
          const { created_at, id: last } = decodeCursor(tampered, plain);
          // Who changes the place alone gets another place of the same list: nothing is protected there.
          expect({ created_at, id: last }).not.toEqual(position);
        } catch (error) {
          expect((error as OmpError).code).toBe('invalid_request');
        }
      }),
      { numRuns: 1000 },
    );
  });

  const [version, mark, milliseconds, last] = contentOf(
    encodeCursor({ created_at: new Date(5).toISOString(), id: 'mem_1' }, plain),
  );
  it.each([
    ['empty', ''],
    ['not base64url', 'a+b/c='],
    ['no JSON', 'abcd'],
    ['padded', `${forged([version, mark, milliseconds, last])}=`],
    ['too long', 'A'.repeat(257)],
    ['no array', forged({ 0: version, length: 4 })],
    ['too short', forged([version, mark, milliseconds])],
    ['too much', forged([version, mark, milliseconds, last, 0])],
    ['of another version', forged([2, mark, milliseconds, last])],
    ['with an id that is no text', forged([version, mark, milliseconds, 7])],
    ['with an empty id', forged([version, mark, milliseconds, ''])],
    ['with a time that is no number', forged([version, mark, '5', last])],
    ['with a fraction of a millisecond', forged([version, mark, 5.5, last])],
    ['with a time beyond all dates', forged([version, mark, 8.64e15 + 1, last])],
    ['null', forged(null)],
    ['with a time no backend can hold', forged([version, mark, 8.64e15, last])],
    ['with NUL in its id', forged([version, mark, milliseconds, 'mem_\0'])],
    ['with half a character in its id', forged([version, mark, milliseconds, 'mem_\ud800'])],
  ])('that is %s is malformed', (_, cursor) => {
    expect(refusal(cursor, plain)).toMatch(MALFORMED);
  });

  it('is accepted when built by hand in the right form, so that the cases above fail for their own reason', () => {
    expect(decodeCursor(forged([version, mark, milliseconds, last]), plain)).toEqual({
      created_at: new Date(5).toISOString(),
      id: 'mem_1',
    });
  });
});

/** The cursors as every release has made them: what is to be read goes on after an update of the gateway. */
const released = (filters: object, id: string, at = 0): string => {
  const sorted = JSON.stringify(Object.entries(filters).sort());
  return forged([1, hash('sha256', sorted, 'base64url').slice(0, 16), at, id]);
};

describe('[Decision 2] a cursor of one verb', async () => {
  const days = { since: '2026-01-01', until: '2026-01-02' };
  const store = storeOf(await openMemory('native', { versions: VERSIONED }));
  const { id } = await store.add({ input: memoryOf('u', 'x') }, call);
  /** For each verb with cursors: an input, and the cursor of an earlier release for it. */
  const KINDS: Record<string, { input: object; cursor: string }> = {
    list: { input: { user_id: 'u' }, cursor: released({ tags: [], user_id: 'u' }, 'mem_1', 5) },
    audit: { input: { user_id: 'u' }, cursor: released({ user_id: 'u' }, '7', 5) },
    versions: { input: { id }, cursor: released({ of: 'versions', id }, '2') },
    users: { input: {}, cursor: released({ of: 'users', prefix: undefined }, 'u') },
    rollback: {
      input: { id: 'u', since: days.since, dry_run: true },
      cursor: released(
        { of: 'rollback', user_id: 'u', dry_run: true, since: `${days.since}T00:00:00.000Z` },
        '0~5~',
        0,
      ),
    },
    retention: {
      input: { dry_run: true },
      cursor: released({ of: 'retention', dry_run: true, rules: [] }, '0~'),
    },
    export: {
      input: {},
      cursor: released({ of: 'export', ids: undefined, user_id: undefined, since: undefined }, 'mem_1'),
    },
    list_keys: { input: {}, cursor: released({ of: 'keys' }, 'k3j2h1g0f9e8', 5) },
    embedding_usage: { input: days, cursor: released({ of: 'embedding-usage', ...days }, '1~ma') },
  };
  const embeddingUsage = { read: async () => [], since: () => undefined };
  const keys = { list: async () => [], find: async () => undefined } as Partial<KeyStore> as KeyStore;
  const { gate } = gateOn({ ...store, embeddingUsage, keys }, recordingLog());
  const session = gate.session({ ...ANONYMOUS, id: 'key:1', grants: { ...ALL_GRANTS, admin: true } }, 'http');
  const run = (name: string, cursor: string) =>
    session.run((VERB_TABLE as Record<string, Verb>)[name] as Verb, { ...KINDS[name]?.input, cursor }, call);

  it('is of a kind that this test knows', () => {
    const paged = Object.entries<Verb>(VERB_TABLE).filter(([, { input }]) => 'cursor' in input.shape);
    expect(paged.map(([name]) => name).sort()).toEqual(Object.keys(KINDS).sort());
  });

  it.each(Object.keys(KINDS))('is taken by that verb also if an earlier release made it: %s', async (name) => {
    await expect(run(name, KINDS[name]?.cursor as string)).resolves.toHaveProperty('next_cursor');
  });

  it.each(Object.keys(KINDS))('is refused by every other verb, with an error that says why: %s', async (made) => {
    for (const name of Object.keys(KINDS)) {
      if (name === made) continue;
      await expect(run(name, KINDS[made]?.cursor as string), name).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringMatching(/^cursor: was made for another request/),
      });
    }
  });
});
