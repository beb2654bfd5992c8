import { randomBytes, randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';

/** Random characters of four bytes, which cannot be compressed. */
const astral = (length: number): string =>
  Array.from({ length }, () => String.fromCodePoint(0x10000 + randomInt(0xffff))).join('');
/** UTF-8 in the form that `fetch` accepts. */
const asHeader = (text: string): string => Buffer.from(text).toString('latin1');

/** On Postgres, because the index of its audit log limits the length of a user. */
describe('X-User-Id', () => {
  let subject: Subject;
  beforeAll(async () => {
    const options = { schema: 'omp', connections: 1, prepared_statements: 'auto', connect_timeout_ms: 60_000 };
    subject = await openSubject({ provider: 'postgres', options, mode: 'keyword' });
  });
  afterAll(() => subject.close());

  const byId = (id: string, user: string) => {
    const headers = { 'x-user-id': asHeader(user) };
    const { ask, tell, byId } = subject.client;
    return [
      ask(byId(id), {}, headers),
      tell('PATCH', byId(id), { tags: [] }, headers),
      tell('DELETE', byId(id), undefined, headers),
    ];
  };
  const actionsFor = async (user_id: string) => {
    const { status, body, text } = await subject.client.ask('/audit', { user_id });
    expect(status, text).toBe(200);
    return (body as { entries: { action: string }[] }).entries.map(({ action }) => action);
  };

  it('[Decision 19] [Decision 11] of any length is answered 404 and leaves no audit entry', async () => {
    const user_id = freshUser();
    const { id } = await subject.client.add({ user_id, content: 'x' });
    for (const nobody of ['', 'x'.repeat(257), astral(257), randomBytes(6_000).toString('base64')])
      for (const reply of await Promise.all(byId(id, nobody))) expectError(reply, 'not_found');
    expect(await actionsFor(user_id)).toEqual(['add']);
  });

  it('[Decision 19] [Decision 8] [Decision 11] may have the maximum length', async () => {
    const user_id = astral(256);
    const { id } = await subject.client.add({ user_id, content: 'x' });
    expect((await Promise.all(byId(id, user_id))).map(({ status }) => status)).toContain(204);
    for (const reply of await Promise.all(byId(id, user_id))) expectError(reply, 'not_found');
    expect(await actionsFor(user_id)).toContain('delete');
  });
});
