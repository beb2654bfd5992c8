import { afterEach, describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import type { Client, Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { openSubject, type Subject } from '../support/subject.ts';
import { bearer, openBackdoor } from './callers.ts';
import type { Key } from './rule.ts';

type Verbs = Required<Provider>;

/** A provider that does not look at what the caller may see: it asks the real one for more than it was asked. */
const careless = (wider: <Query extends object>(query: Query) => Query) => (provider: Provider) => {
  const { get, update, list, search, audit } = provider as Verbs;
  return {
    ...provider,
    get: (ref, call) => get(wider(ref), call),
    update: (ref, patch, vector, call) => update(wider(ref), patch, vector, call),
    list: (query, call) => list(wider(query), call),
    search: (query, call) => search(wider(query), call),
    audit: { ...audit, read: (query, call) => audit.read(wider(query), call) },
  } satisfies Provider;
};

const everywhere = careless((query) => ({ ...query, within: null }));
/** Whoever is asked for, it answers with what is ana's. */
const ofAna = careless((query) => ('user_id' in query ? { ...query, user_id: 'ana' } : { ...query, users: null }));

const SECRET = 'opensesame';
const asks = (id: string): Readonly<Record<string, (client: Client, user_id: string) => Promise<Reply>>> => ({
  get: ({ ask, byId }, user) => ask(byId(id), {}, { 'x-user-id': user }),
  update: ({ tell, byId }, user) => tell('PATCH', byId(id), { tags: ['t'] }, { 'x-user-id': user }),
  list: ({ ask }, user_id) => ask('/memories', { user_id }),
  search: ({ ask }, user_id) => ask('/memories/search', { user_id, q: SECRET }),
  context: ({ tell }, user_id) => tell('POST', '/context', { user_id, query: SECRET }),
  audit: ({ ask }, user_id) => ask('/audit', { user_id }),
});

/** The second line: what comes back is judged again, so a mistake in a provider's query shows nothing to anybody. */
describe('a provider that answers with more than it was asked for', () => {
  let subject: Subject | undefined;
  afterEach(() => subject?.close());

  it.for([
    { title: 'scopes outside of the grant', alter: everywhere, grants: ['*:coding/*'], users: ['ana'], user: 'ana' },
    { title: 'the records of another user', alter: ofAna, grants: ['*:*'], users: ['ben'], user: 'ben' },
    { title: 'another user than the one asked for', alter: ofAna, grants: ['*:*'], users: null, user: 'ben' },
  ])(
    '[Decision 14] [Decision 16] [SPEC Errors provider_error] $title: nothing of it is passed on',
    async ({ alter, user, ...given }) => {
      const door = openBackdoor();
      subject = await openSubject({
        provider: 'memory',
        options: { scopes: 'native' },
        authenticator: door.authenticator,
        alter,
      });
      const master = subject.as(bearer(door.admit('master')));
      const { id } = await master.add({ user_id: 'ana', scope: 'coding-secret/x', content: SECRET });
      const key: Key = given;
      const client = subject.as(bearer(door.admit('key', key)));
      for (const [verb, ask] of Object.entries(asks(id))) {
        const reply = await ask(client, user);
        expect(reply.status, verb).toBe(502);
        expectError(reply, 'provider_error');
        expect(reply.text, verb).not.toMatch(new RegExp(`${SECRET}|${id}|ana|coding`));
      }
    },
  );
});
