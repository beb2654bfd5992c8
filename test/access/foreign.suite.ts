import { expect, it } from 'vitest';
import type { Client, Reply } from '../support/client.ts';
import type { Bench } from './bench.ts';
import { bearer, clientWith } from './callers.ts';
import { named, type SCOPES, USERS } from './cases.ts';
import { asserting, UNKNOWN_ID } from './read-cases.ts';
import type { Key } from './rule.ts';

type Headers = Record<string, string>;
type ById = (id: string, client: Client, headers: Headers) => Promise<Reply>;

const VERBS: Readonly<Record<string, ById>> = {
  get: (id, { ask, byId }, headers) => ask(byId(id), {}, headers),
  update: (id, { tell, byId }, headers) => tell('PATCH', byId(id), { content: 'changed' }, headers),
  'update that changes nothing': (id, { tell, byId }, headers) => tell('PATCH', byId(id), {}, headers),
  move: (id, { tell, byId }, headers) => tell('PATCH', byId(id), { scope: 'coding/x' }, headers),
  delete: (id, { tell, byId }, headers) => tell('DELETE', byId(id), undefined, headers),
};

/** Whose record it is, bound to whom the key is, and whose the client says it is. */
interface Stranger {
  readonly users: readonly string[] | null;
  readonly user: string | undefined;
}
const STRANGERS: readonly Stranger[] = [
  // Out of reach, whatever the client says.
  ...[undefined, ...USERS].flatMap((user) => [['ana'], ['ana', 'cleo']].map((users) => ({ users, user }))),
  // In reach, but said to be somebody else's (Decision 19).
  ...['ana', 'cleo'].flatMap((user) => [null, ['ben'], ['ana', 'ben']].map((users) => ({ users, user }))),
];
/** Each verb granted nowhere, somewhere, everywhere: what a gateway looks up depends on it. */
const GRANTS: readonly (readonly string[])[] = [
  [],
  ['*:*'],
  ['*:coding/*'],
  ['read:*', 'write:coding'],
  ['delete:*', 'read:CODING/*'],
  ['write:*', 'delete:*/x'],
];
/** An unscoped record, and one on either side of what most grants cover. */
const PLACES: readonly (typeof SCOPES)[number][] = [null, 'coding/x', 'coding-secret/x'];

/** Existence does not leak: whatever can be observed of a request by id is the same for an id that names nothing. */
export const foreignSuite = (bench: () => Bench): void =>
  it('[Decision 14] [Decision 19] [SPEC Errors not_found] a record out of reach cannot be told from an unknown id', async () => {
    const { subject, world, door } = bench();
    const targets = world.targets.filter(
      ({ user_id, scope }) => user_id === 'ben' && PLACES.some((place) => place === (scope ?? null)),
    );
    expect(targets).toHaveLength(PLACES.length);
    let count = 0;
    for (const grants of GRANTS) {
      for (const { users, user } of STRANGERS) {
        const key: Key = { grants, users };
        const client = clientWith(subject, bearer(door.admit('stranger', key)));
        for (const [verb, ask] of Object.entries(VERBS)) {
          const observe = (id: string) => observed(bench(), () => ask(id, client, asserting(user)));
          const unknown = await observe(UNKNOWN_ID);
          expect(unknown.status).toBe(404);
          for (const { id, scope } of targets) {
            const label = `${named(key)}: ${verb} a record of ben in ${scope} as ${user ?? 'nobody'}'s`;
            expect(await observe(id), label).toEqual(unknown);
            count++;
          }
        }
      }
    }
    bench().tally.set('not_found', (bench().tally.get('not_found') ?? 0) + count);
    expect(await world.differences()).toEqual([]);
  });

/** Everything a client could notice, and what the answer took. */
async function observed({ lookUps, embedded }: Bench, send: () => Promise<Reply>) {
  const [asked, texts] = [lookUps.length, embedded()];
  const { status, headers, body } = await send();
  const { error } = (body ?? {}) as { error?: Record<string, unknown> };
  return {
    status,
    error: { ...error, request_id: typeof error?.request_id },
    headers: [...headers].filter(([name]) => name !== 'x-request-id'),
    names: [...headers.keys()],
    lookUps: lookUps.slice(asked),
    embedded: embedded() - texts,
  };
}
