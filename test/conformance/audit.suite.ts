import { describe, expect } from 'vitest';
import type { Client, Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, laterMoment } from '../support/gateway.ts';
import { VERBS, type WireAuditEntry, type WireMemory } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

const UNKNOWN_ID = 'mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const FIELDS = ['timestamp', 'app', 'action', 'memory_id', 'scope', 'request_id', 'outcome'].sort();

/** What a test knows of an entry before it is made. */
const known = ({ timestamp: _, ...rest }: WireAuditEntry) => rest;
const brief = ({ action, outcome }: WireAuditEntry): string => `${action} ${outcome}`;

export const auditSuite = (subject: GetSubject, admit: Admit) =>
  describe('audit', () => {
    const test = testOf(subject);
    /** Sends the requests one after the other, each in its own millisecond and with its position as request id. */
    const inOrder = async (...requests: readonly ((headers: Record<string, string>) => Promise<Reply>)[]) => {
      const replies: Reply[] = [];
      for (const [place, send] of requests.entries()) {
        await laterMoment();
        replies.push(await send({ 'x-request-id': `request-${place}` }));
      }
      await laterMoment();
      return replies;
    };
    const idOf = ([first]: readonly Reply[]): string => (first?.body as WireMemory | undefined)?.id ?? '';

    test('[Decision 11] [SPEC Capabilities features.supports_audit] has an entry of every verb, newest first, with caller, memory and outcome', async (need) => {
      need(...VERBS);
      const user_id = freshUser();
      const { ask, tell, byId } = admit({ app: 'recorder' });
      const first = await inOrder(
        (headers) => tell('POST', '/memories', { user_id, content: 'coffee', scope: 'a/b' }, headers),
        (headers) => ask('/memories', { user_id }, headers),
        (headers) => ask('/memories', { user_id, scope: 'a/*' }, headers),
        (headers) => ask('/memories/search', { user_id, q: 'coffee' }, headers),
        (headers) => ask('/memories/search', { user_id, q: 'coffee', scope: 'a' }, headers),
        (headers) => tell('POST', '/context', { user_id, query: 'coffee', scope: 'a/b' }, headers),
        (headers) => ask('/audit', { user_id }, headers),
      );
      const id = idOf(first);
      await inOrder(
        (headers) => ask(byId(id), {}, headers),
        (headers) => tell('PATCH', byId(id), { scope: 'a/c' }, headers),
        (headers) => tell('PATCH', byId(id), {}, headers),
        (headers) => tell('DELETE', byId(id), undefined, headers),
      );
      const made = (place: number, action: string, memory_id: string | null, scope: string | null) => ({
        app: 'recorder',
        action,
        memory_id,
        scope,
        request_id: `request-${place}`,
        outcome: 'ok',
      });
      expect((await subject().client.audit({ user_id })).map(known)).toEqual([
        made(3, 'delete', id, 'a/c'),
        made(2, 'update', id, 'a/c'),
        made(1, 'update', id, 'a/c'),
        made(0, 'get', id, 'a/b'),
        made(6, 'audit', null, null),
        made(5, 'context', null, 'a/b'),
        made(4, 'search', null, 'a'),
        made(3, 'search', null, null),
        made(2, 'list', null, 'a/*'),
        made(1, 'list', null, null),
        made(0, 'add', id, 'a/b'),
      ]);
    });

    test('[Decision 11] has an entry of every failure, with the code of the error', async (need) => {
      need(...VERBS, 'scopes');
      const user_id = freshUser();
      const { id } = await subject().client.add({ user_id, content: 'hidden', scope: 'b' });
      const { ask, tell, byId } = admit({ app: 'prying', grants: ['*:a'] });
      const replies = await inOrder(
        (headers) => tell('POST', '/memories', { user_id, content: 'x', scope: 'c' }, headers),
        (headers) => ask(byId(id), {}, headers),
        (headers) => tell('PATCH', byId(id), { content: 'x' }, headers),
        (headers) => tell('PATCH', byId(id), { scope: 'a' }, headers),
        (headers) => tell('DELETE', byId(id), undefined, headers),
        (headers) => ask('/memories', { user_id, scope: 'b' }, headers),
        (headers) => ask('/memories/search', { user_id, scope: 'b', q: 'x' }, headers),
        (headers) => tell('POST', '/context', { user_id, scope: 'b', query: 'x' }, headers),
      );
      expect(replies.map(({ status }) => status)).toEqual(Array(8).fill(403));
      const entries = (await subject().client.audit({ user_id, app: 'prying' })).map(known).reverse();
      const failed = (place: number, action: string, rest: Partial<WireAuditEntry> = {}) => ({
        app: 'prying',
        action,
        memory_id: id,
        scope: 'b',
        request_id: `request-${place}`,
        outcome: 'scope_denied',
        ...rest,
      });
      expect(entries).toEqual([
        failed(0, 'add', { memory_id: null, scope: 'c' }),
        failed(1, 'get'),
        failed(2, 'update'),
        failed(3, 'update'),
        failed(4, 'delete'),
        failed(5, 'list', { memory_id: null }),
        failed(6, 'search', { memory_id: null }),
        failed(7, 'context', { memory_id: null }),
      ]);
    });

    test("[Decision 11] [Decision 19] a request for a user the caller may not access leaves no entry in that user's log", async (need) => {
      need(...VERBS);
      const [ana, bob] = [freshUser(), freshUser()];
      const { id } = await subject().client.add({ user_id: bob, content: 'x' });
      const claims = { 'x-user-id': bob };
      const text = 'written by ana '.repeat(30);
      for (const { ask, tell, byId } of [admit({ app: 'prying', users: [ana] }), admit({ app: 'prying' })]) {
        for (const named of [UNKNOWN_ID, text]) {
          expectError(await ask(byId(named), {}, claims), 'not_found');
          expectError(await tell('PATCH', byId(named), { content: 'x' }, claims), 'not_found');
          expectError(await tell('DELETE', byId(named), undefined, claims), 'not_found');
        }
      }
      const { ask, tell, byId } = admit({ app: 'prying', users: [ana] });
      const scope = 'written/by/ana';
      const replies = await inOrder(
        (headers) => ask(byId(id), {}, { ...headers, ...claims }),
        (headers) => tell('DELETE', byId(id), undefined, headers),
        (headers) => tell('POST', '/memories', { user_id: bob, content: 'x', scope }, headers),
        (headers) => ask('/memories', { user_id: bob, scope }, headers),
        (headers) => ask('/memories/search', { user_id: bob, scope, q: 'x' }, headers),
        (headers) => tell('POST', '/context', { user_id: bob, scope, query: 'x' }, headers),
        (headers) => ask('/audit', { user_id: bob }, headers),
      );
      expect(replies.map(({ status }) => status)).toEqual([404, 404, 403, 403, 403, 403, 403]);
      expect((await subject().client.audit({ user_id: bob })).map(brief)).toEqual(['add ok']);
      expect(await subject().client.audit({ user_id: ana })).toEqual([]);
    });

    test('[Decision 11] [Decision 2] pages hold each entry once, also while others are written; until is inclusive', async (need) => {
      need('audit');
      const user_id = freshUser();
      const client = admit({ app: 'paging' });
      // Several in one millisecond.
      await Promise.all(Array.from({ length: 7 }, () => client.add({ user_id, content: 'x' })));
      const asked = { user_id, app: 'paging', since: '2000-01-01' };
      const all = await subject().client.audit(asked);
      expect(all).toHaveLength(7);
      const paged: WireAuditEntry[] = [];
      let cursor: string | null = null;
      do {
        const { body } = await subject().client.ask('/audit', { ...asked, limit: 2, ...(cursor && { cursor }) });
        const page = body as { entries: WireAuditEntry[]; next_cursor: string | null };
        paged.push(...page.entries);
        cursor = page.next_cursor;
        if (cursor) await client.add({ user_id, content: 'x' });
      } while (cursor !== null && paged.length < 20);
      expect(paged).toEqual(all);

      const [newest, oldest] = [all[0]?.timestamp ?? '', all.at(-1)?.timestamp ?? ''];
      expect((await subject().client.audit({ ...asked, until: newest })).map(known)).toEqual(
        expect.arrayContaining(all.map(known)),
      );
      const before = new Date(Date.parse(oldest) - 1).toISOString();
      expect(await subject().client.audit({ ...asked, until: before })).toEqual([]);
    });

    test('[Decision 11] [Decision 20] the reuse of a key for another memory is a failed add, a repetition a successful one', async (need) => {
      need('audit', 'idempotency');
      const user_id = freshUser();
      const { tell } = admit({});
      const once = { 'idempotency-key': 'k' };
      const send = (content: string) => (headers: Record<string, string>) =>
        tell('POST', '/memories', { user_id, content }, { ...once, ...headers });
      const first = await inOrder(send('one'), send('one'), send('two'));
      const about = (entry: WireAuditEntry) => [entry.request_id, brief(entry), entry.memory_id];
      expect((await subject().client.audit({ user_id })).map(about)).toEqual([
        ['request-2', 'add invalid_request', null],
        ['request-1', 'add ok', idOf(first)],
        ['request-0', 'add ok', idOf(first)],
      ]);
    });

    test('[Decision 11] since is inclusive; app and limit leave out the others', async (need) => {
      need('audit');
      const user_id = freshUser();
      const one = admit({ app: 'one' });
      const other = admit({ app: 'other' });
      const add = (client: Client) => client.add({ user_id, content: 'x' });
      for (let i = 0; i < 3; i++) {
        await add(one);
        await laterMoment();
        await add(other);
        await laterMoment();
      }
      // Reading has entries too, but without an app.
      const audit = (query: Record<string, string | number>) => subject().client.audit({ user_id, ...query });
      const apps = async (query: Record<string, string | number>) => (await audit(query)).map(({ app }) => app);
      const first = await audit({});
      expect(first.map(({ app }) => app)).toEqual(['other', 'one', 'other', 'one', 'other', 'one']);
      expect(await apps({ app: 'one' })).toEqual(['one', 'one', 'one']);
      expect(await apps({ app: 'on' })).toEqual([]);
      expect(await apps({ app: 'other', limit: 2 })).toEqual(['other', 'other']);
      const { timestamp = '' } = first[2] ?? {};
      expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(await apps({ app: 'other', since: timestamp })).toEqual(['other', 'other']);
      const later = new Date(Date.parse(timestamp) + 1).toISOString();
      expect(await apps({ app: 'other', since: later })).toEqual(['other']);
      expect(await apps({ since: '2999-01-01' })).toEqual([]);
    });

    test('[Decision 11] contains no contents, queries, tags or owners', async (need) => {
      need(...VERBS);
      const user_id = freshUser();
      const { client } = subject();
      const fields = { content: 'zebra', tags: ['zebra'], source: { app: 'zebra', ref: 'zebra' }, 'x-zebra': 'zebra' };
      const { id } = await client.add({ user_id, ...fields });
      await client.update(id, { content: 'zebra two', tags: ['zebra two'] });
      await client.search({ user_id, q: 'zebra' });
      await client.list({ user_id, tag: 'zebra' });
      await client.context({ user_id, query: 'zebra' });
      const { text, body } = await client.ask('/audit', { user_id });
      expect(text).not.toMatch(/zebra/);
      expect(text).not.toContain(user_id);
      expect(Object.keys(body as object)).toEqual(['entries', 'next_cursor']);
      const { entries } = body as { entries: readonly WireAuditEntry[] };
      expect(entries.map(brief).sort()).toEqual(['add ok', 'context ok', 'list ok', 'search ok', 'update ok']);
      for (const entry of entries) expect(Object.keys(entry).sort()).toEqual(FIELDS);
    });

    test("[Decision 11] [SPEC Service users] shows one user's entries only", async (need) => {
      need('audit');
      const [mine, theirs] = [freshUser(), freshUser()];
      const { client } = subject();
      const { id } = await client.add({ user_id: mine, content: 'x' });
      await client.add({ user_id: theirs, content: 'y' });
      expect((await client.audit({ user_id: mine })).map(({ memory_id }) => memory_id)).toEqual([id]);
      expect(await client.audit({ user_id: freshUser() })).toEqual([]);
    });
  });
