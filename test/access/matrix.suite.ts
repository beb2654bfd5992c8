import { expect, it } from 'vitest';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import type { Client, Reply } from '../support/client.ts';
import { FULL } from '../support/full.ts';
import { recordingLog } from '../support/subject.ts';
import { type Bench, checkKey, featuresOf } from './bench.ts';
import { bearer, configure } from './callers.ts';
import { asserting, BINDINGS, GRANTS, named, type SCOPES, STALE, UNKNOWN_ID, USERS } from './cases.ts';
import type { Key } from './rule.ts';

const given = (bindingsOf: (grants: readonly string[], index: number) => typeof BINDINGS) =>
  GRANTS.map((grants, index) => ({
    title: grants.join(' ') || 'nothing',
    grants,
    bindings: bindingsOf(grants, index),
  }));
const EVERY = given(() => BINDINGS);
/** Two grants with every binding, the others with one. */
export const SOME = given((grants, index) =>
  ['*:*', 'read:coding/*'].includes(grants.join()) ? BINDINGS : BINDINGS.slice(index % BINDINGS.length).slice(0, 1),
);

/**
 * Every verb × grant × user binding × owner × neighbouring scope, as configured keys. Each case is judged by the plain
 * rule: status, error code, body, and the whole store afterwards. A refused request changes nothing and embeds nothing.
 */
export function rightsSuite(bench: () => Bench, keys = FULL ? EVERY : SOME): void {
  it.for(keys)(
    '[Decision 14] [SPEC Authentication 5] [SPEC Errors scope_denied] [SPEC Errors not_found] a key granted $title',
    async ({ grants, bindings }) => {
      const keys = bindings.map((users) => ({ rights: { grants, users }, ...configure({ grants, users }) }));
      const configured = keys.map((key) => key.configured);
      const { door, subject } = bench();
      const options = { keys: configured, store: undefined, jwt: undefined, required: true, log: recordingLog() };
      door.front = await openAuthenticator(options);
      for (const { rights, key } of keys) await checkKey(rights, subject.as(bearer(key)), bench());
    },
  );

  it('[Decision 14] [SPEC Errors message] every refusal of a kind has the same message, and every kind came up', () => {
    const { tally, messages } = bench();
    const codes = [
      'not_found',
      'scope_denied',
      ...(Object.values(featuresOf(bench())).every(Boolean) ? [] : ['unsupported_capability']),
      ...(featuresOf(bench()).etags ? ['invalid_request'] : []),
    ];
    expect([...tally.keys()].sort()).toEqual(['ok', ...codes].sort());
    expect(Math.min(...tally.values())).toBeGreaterThan(50);
    expect([...messages.keys()].sort()).toEqual(codes.sort());
    // Only what the backend lacks has a name.
    messages.delete('unsupported_capability');
    for (const [code, texts] of messages) expect([...texts], code).toHaveLength(1);
  });
}

type Headers = Record<string, string>;
type ById = (id: string, client: Client, headers: Headers) => Promise<Reply>;

const VERBS: Readonly<Record<string, ById>> = {
  get: (id, { ask, byId }, headers) => ask(byId(id), {}, headers),
  update: (id, { tell, byId }, headers) => tell('PATCH', byId(id), { content: 'changed' }, headers),
  'update that changes nothing': (id, { tell, byId }, headers) => tell('PATCH', byId(id), {}, headers),
  move: (id, { tell, byId }, headers) => tell('PATCH', byId(id), { scope: 'coding/x' }, headers),
  delete: (id, { tell, byId }, headers) => tell('DELETE', byId(id), undefined, headers),
  'update of a version': (id, { tell, byId }, headers) =>
    tell('PATCH', byId(id), { content: 'changed' }, { ...headers, ...STALE }),
  'delete of a version': (id, { tell, byId }, headers) => tell('DELETE', byId(id), undefined, { ...headers, ...STALE }),
};

/** Users the key is bound to, and the user the client names, for a record of ben. */
interface Stranger {
  readonly users: readonly string[] | null;
  readonly user: string | undefined;
}
const STRANGERS: readonly Stranger[] = [
  // Out of reach, whatever the client says.
  ...[undefined, ...USERS].flatMap((user) => [['ana'], ['ana', 'cleo']].map((users) => ({ users, user }))),
  // In reach, but asked for as another user's (Decision 19).
  ...['ana', 'cleo'].flatMap((user) => [null, ['ben'], ['ana', 'ben']].map((users) => ({ users, user }))),
];
/** Each verb granted nowhere, somewhere, everywhere: what the gateway looks up depends on it. */
const STRANGERS_GRANTS: readonly (readonly string[])[] = [
  [],
  ['*:*'],
  ['*:coding/*'],
  ['read:*', 'write:coding'],
  ['delete:*', 'read:CODING/*'],
  ['write:*', 'delete:*/x'],
];
/** An unscoped record, and one on either side of what most grants cover. */
const PLACES: readonly (typeof SCOPES)[number][] = [null, 'coding/x', 'coding-secret/x'];

/** Existence does not leak: nothing that can be observed of a request by id differs from an unknown id. */
export const existenceSuite = (bench: () => Bench): void =>
  it('[Decision 14] [Decision 19] [SPEC Errors not_found] a record out of reach cannot be told from an unknown id', async () => {
    const { subject, world, door } = bench();
    const targets = world.targets.filter(
      ({ user_id, scope }) => user_id === 'ben' && PLACES.some((place) => place === (scope ?? null)),
    );
    expect(targets).toHaveLength(PLACES.length);
    for (const grants of STRANGERS_GRANTS) {
      for (const { users, user } of STRANGERS) {
        const key: Key = { grants, users };
        const client = subject.as(bearer(door.admit('stranger', key)));
        for (const [verb, ask] of Object.entries(VERBS)) {
          const observe = (id: string) => observed(bench(), () => ask(id, client, asserting(user)));
          for (const { id, scope } of targets) {
            // An id of a mounted store names it.
            const unknown = await observe((/^~[^~]*~/.exec(id)?.[0] ?? '') + UNKNOWN_ID);
            expect(unknown.status).toBe(404);
            const label = `${named(key)}: ${verb} a record of ben in ${scope} as ${user ?? 'nobody'}'s`;
            expect(await observe(id), label).toEqual(unknown);
          }
        }
      }
    }
    expect(await world.differences()).toEqual([]);
  });

/** Everything a client could notice, and the work behind the answer. */
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
