import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import type { Client } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { recordingLog } from '../support/subject.ts';
import type { Bench } from './bench.ts';
import { clientWith } from './callers.ts';
import { changeCases } from './change-cases.ts';
import { openCredentials, type Presented } from './credentials.ts';
import { type IdentityProvider, openIdentityProvider } from './identity-provider.ts';
import { checkKey, SHOWN, wrongRefusal } from './matrix.ts';
import { type Case, readCases } from './read-cases.ts';
import type { Key } from './rule.ts';

const EVERYTHING: Key = { grants: ['*:*'], users: null };

/** Every kind of credential, by either header, on every verb: who gets in gets just its grants, who does not gets 401. */
export const kindsSuite = (bench: () => Bench) =>
  describe('kinds of credentials', () => {
    let identity: IdentityProvider;
    let known: Awaited<ReturnType<typeof openCredentials>>;
    beforeAll(async () => {
      identity = await openIdentityProvider();
      known = await openCredentials(bench().subject, identity);
      bench().door.front = known.authenticator;
    });
    afterAll(async () => {
      await known?.authenticator.close();
      await identity?.close();
    });
    const has = (list: readonly Presented[], kind: string) => list.some((one) => one.kind.startsWith(kind));

    it('[SPEC Authentication 2] [Decision 13] [Decision 14] a good key or token gets what it was granted, by either header', async () => {
      const { subject, expected } = bench();
      for (const { kind, rights, headers } of known.admitted) {
        await checkKey(rights, clientWith(subject, headers), bench()).catch((error: Error) => {
          throw new Error(`${kind}: ${error.message}`, { cause: error });
        });
      }
      expect(['configured key', 'stored key', 'token'].filter((kind) => has(known.admitted, kind))).toEqual(
        expected.keys ? ['configured key', 'stored key', 'token'] : ['configured key', 'token'],
      );
    });

    it('[SPEC Authentication 5] [SPEC Errors unauthorized] [Decision 13] anything else is 401 on every path, and changes and tells nothing', async () => {
      const { subject, world, embedded, expected } = bench();
      const before = embedded();
      const own = { ...bench(), messages: new Map() };
      const requests = everything(bench());
      const nobody: Presented = { kind: 'no credential', headers: {} };
      for (const { kind, headers } of [nobody, ...known.refused]) {
        const client = clientWith(subject, headers);
        const replies = await Promise.all(requests.map(async (one) => wrongRefusal(one, await one.send(client), own)));
        expect(replies.filter(Boolean).slice(0, SHOWN), kind).toEqual([]);
        await expectPublic(client, kind);
      }
      own.tally.set('unauthorized', requests.length * (known.refused.length + 1));
      // One text without a credential, one for every credential that is not good, whatever is wrong with it.
      expect(own.messages.get('unauthorized')).toHaveLength(2);
      expect(await world.differences()).toEqual([]);
      expect(embedded()).toBe(before);
      expect(has(known.refused, 'revoked stored key')).toBe(expected.keys);
    });

    it('[SPEC Authentication 3] [Decision 13] while nobody was given a key, everybody may do everything', async () => {
      const { subject, door } = bench();
      const options = { keys: [], store: undefined, jwt: undefined, required: false, log: recordingLog() };
      door.front = await openAuthenticator(options);
      const dummies: readonly Presented['headers'][] = [
        {},
        { authorization: 'Bearer dummy' },
        { 'x-api-key': 'dummy' },
        { authorization: 'Basic YTpi' },
      ];
      for (const headers of dummies) await checkKey(EVERYTHING, clientWith(subject, headers), bench());
      door.front = await openAuthenticator({ ...options, required: true });
      const reply = await clientWith(subject, {}).ask('/memories', { user_id: 'ana' });
      expectError(reply, 'unauthorized');
    });
  });

/** Every case of the matrix, malformed requests, and paths that do not exist. */
function everything({ world, expected }: Bench): Case[] {
  const tell = (method: string, path: string, body?: unknown): Case => ({
    name: `${method} ${path}`,
    send: (client) => client.tell(method, path, body),
    code: 'unauthorized',
  });
  return [
    ...[...readCases(EVERYTHING, world, expected.audit), ...changeCases(EVERYTHING, world)].map(
      ({ name, send }): Case => ({ name, send, code: 'unauthorized' }),
    ),
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
