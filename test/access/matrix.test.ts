import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import type { Client } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { FULL } from '../support/full.ts';
import { openMounted } from '../support/mounted.ts';
import { openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { openSubject, recordingLog } from '../support/subject.ts';
import { type Bench, checkKey, featuresOf, type Open, openBench, SHOWN, wrongRefusal } from './bench.ts';
import { type Case, changeCases, eraseCases, readCases } from './cases.ts';
import { openCredentials, type Presented } from './credentials.ts';
import { existenceSuite, keysSuite, rightsSuite } from './matrix.suite.ts';
import type { Key } from './rule.ts';

const EVERYTHING: Key = { grants: ['*:*'], users: null };

/**
 * The access matrix shows, case by case, that a key gets what it was granted, no more and no less, and that nothing tells
 * a record out of reach from an unknown id. Globs against each other are in `test/toolbox/scope-glob.test.ts`, random data
 * and grants in `view.test.ts`.
 */
const matrix = (
  label: string,
  open: Open,
  more: (bench: () => Bench) => void = () => {},
  mounts: readonly string[] = [],
) =>
  describe(`access matrix, ${label}`, () => {
    let opened: Bench | undefined;
    beforeAll(async () => {
      opened = await openBench(open, undefined, mounts);
    });
    afterAll(() => opened?.subject.close());
    const bench = (): Bench => {
      if (opened === undefined) throw new Error(`${label} did not open`);
      return opened;
    };
    rightsSuite(bench);
    existenceSuite(bench);
    keysSuite(bench);
    more(bench);
  });

/** Every kind of credential, by either header: a good one gets its grants, anything else gets 401. */
const credentialsSuite = (bench: () => Bench) =>
  describe('kinds of credentials', () => {
    let known: Awaited<ReturnType<typeof openCredentials>>;
    beforeAll(async () => {
      known = await openCredentials(bench().subject);
      bench().door.front = known.authenticator;
    });
    afterAll(() => known?.close());

    it('[SPEC Authentication 2] [Decision 13] [Decision 14] a good key or token gets what it was granted, by either header', async () => {
      for (const { kind, rights, headers } of known.admitted) {
        await checkKey(rights, bench().subject.as(headers), bench()).catch((error: Error) => {
          throw new Error(`${kind}: ${error.message}`, { cause: error });
        });
      }
    });

    it('[SPEC Authentication 5] [SPEC Errors unauthorized] [Decision 13] anything else is 401 on every path, and changes and tells nothing', async () => {
      const { subject, world, embedded } = bench();
      const before = embedded();
      const own = { ...bench(), messages: new Map() };
      const requests = oneOfEachVerb(bench());
      const none: Presented = { kind: 'no credential', headers: {} };
      for (const { kind, headers } of [none, ...known.refused]) {
        const client = subject.as(headers);
        const replies = await Promise.all(requests.map(async (one) => wrongRefusal(one, await one.send(client), own)));
        expect(replies.filter(Boolean).slice(0, SHOWN), kind).toEqual([]);
        await expectPublic(client, kind);
      }
      // One message without a credential, one for every bad credential.
      expect(own.messages.get('unauthorized')).toHaveLength(2);
      expect(await world.differences()).toEqual([]);
      expect(embedded()).toBe(before);
    });

    it('[SPEC Authentication 3] [Decision 13] without any configured key everybody may do everything', async () => {
      const { subject, door } = bench();
      const options = { keys: [], store: undefined, jwt: undefined, required: false, log: recordingLog() };
      door.front = await openAuthenticator(options);
      const dummies: readonly Presented['headers'][] = [{ authorization: 'Bearer dummy' }, { 'x-api-key': 'dummy' }];
      for (const headers of dummies) {
        await checkKey(EVERYTHING, subject.as(headers), bench());
      }
      door.front = await openAuthenticator({ ...options, required: true });
      expectError(await subject.as({}).ask('/memories', { user_id: 'ana' }), 'unauthorized');
    });
  });

/** The first case of each verb, malformed requests, and paths that do not exist. */
function oneOfEachVerb(bench: Bench): Case[] {
  const tell = (method: string, path: string, body?: unknown): Case => ({
    name: `${method} ${path}`,
    send: (client) => client.tell(method, path, body),
    code: 'unauthorized',
  });
  const verbs = new Map<string, Case>();
  for (const one of [
    ...readCases(EVERYTHING, bench.world, featuresOf(bench)),
    ...changeCases(EVERYTHING, bench.world, featuresOf(bench)),
    ...eraseCases(EVERYTHING, featuresOf(bench)),
  ]) {
    const [verb = ''] = one.name.split(' ');
    if (!verbs.has(verb)) verbs.set(verb, { name: one.name, send: one.send, code: 'unauthorized' });
  }
  return [
    ...verbs.values(),
    tell('POST', '/memories', { content: 7 }),
    tell('GET', '/memories?limit=x'),
    tell('GET', '/nowhere'),
    tell('PUT', '/memories'),
    tell('POST', '/capabilities'),
    tell('GET', '/memories/%00'),
  ];
}

async function expectPublic(client: Client, kind: string): Promise<void> {
  for (const path of ['/capabilities', '/healthz', '/openapi.json']) {
    expect((await client.ask(path)).status, `${kind}: ${path} [SPEC Authentication 4]`).toBe(200);
  }
}

matrix('memory', (options) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...options }));
matrix('memory with emulated scopes', (options) =>
  openSubject({ provider: 'memory', options: { scopes: 'none' }, ...options }),
);
// The only one that stores keys.
matrix(
  'embedded postgres',
  (options) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...options }),
  credentialsSuite,
);
/** Two stores mounted where the scopes of the cases are neighbours. */
const withMounts: Open = (options) =>
  openMounted(
    (own) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...own }),
    [
      {
        name: 'code',
        mount: 'coding',
        open: (own) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...own }),
      },
      {
        name: 'secret',
        mount: 'coding-secret',
        open: (own) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...own }),
      },
    ],
    options,
  );
matrix('three stores', withMounts, undefined, ['coding', 'coding-secret']);
if (FULL && SERVER_URL !== '') matrix('postgres on a server', (options) => openServerSubject({}, undefined, options));
