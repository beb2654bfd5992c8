import { describe, expect } from 'vitest';
import type { Client } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, laterMoment } from '../support/gateway.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

type Line = Readonly<Record<string, unknown>> & { readonly type: string };

const pathOf = (user: string) => `/users/${encodeURIComponent(user)}/file`;

/** The lines of a file. */
async function fileOf(client: Client, user: string): Promise<Line[]> {
  const { status, text, headers } = await client.ask(pathOf(user));
  expect(status, text).toBe(200);
  expect(headers.get('content-type')).toBe('application/x-ndjson');
  expect(text.endsWith('\n')).toBe(true);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const typed = (lines: readonly Line[], type: string) => lines.filter((line) => line.type === type);

/** What a file says of a memory: what is not set is left out. */
const spoken = (memory: object) =>
  Object.fromEntries(
    Object.entries(memory).filter(
      ([name, value]) => name !== 'user_id' && value !== null && !(Array.isArray(value) && value.length === 0),
    ),
  );

export const personSuite = (subject: GetSubject, admit: Admit) =>
  describe('the file of a person', () => {
    const test = testOf(subject);

    test('[Decision 61] has every memory of the user with every field that is set, and nobody else’s', async (need) => {
      need('person_file', 'add', 'get');
      const { client } = subject();
      const [user_id, other] = [freshUser(), freshUser()];
      const added = [];
      for (const content of ['one', 'café\n☕ "two"', 'three']) {
        const { id } = await client.add({ user_id, content });
        added.push(await client.get(id));
      }
      await client.add({ user_id: other, content: 'of somebody else' });
      const lines = await fileOf(client, user_id);
      expect(lines[0]).toMatchObject({ type: 'person', user_id, format: 1 });
      const memories = typed(lines, 'memory').map(({ type: _, store: __, version: ___, ...fields }) => fields);
      const byId = (a: object, b: object) => ((a as Line).id as string).localeCompare((b as Line).id as string);
      expect(memories.sort(byId)).toEqual(added.map(spoken).sort(byId));
      const audited = typed(lines, 'audit').length;
      expect(typed(lines, 'missing')).toEqual([]);
      expect(lines.at(-1)).toEqual({
        ...{ type: 'end', memories: 3, audit_entries: audited, complete: true },
        versions: typed(lines, 'version').length,
      });
    });

    test('[Decision 61] has the versions of a memory after it, newest first', async (need) => {
      need('person_file', 'add', 'update', 'versions');
      const { client } = subject();
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'one' });
      for (const content of ['two', 'three']) {
        await laterMoment();
        await client.update(id, { content });
      }
      await client.add({ user_id, content: 'another' });
      const lines = await fileOf(client, user_id);
      const own = lines.filter((line) => line.id === id);
      expect(own.map(({ type, version, content }) => [type, version, content])).toEqual([
        ['memory', 3, 'three'],
        ['version', 2, 'two'],
        ['version', 1, 'one'],
      ]);
      const at = lines.indexOf(own[0] as Line);
      expect(lines.slice(at, at + 3)).toEqual(own);
      expect(lines.at(-1)).toMatchObject({ memories: 2, versions: 2, complete: true });
    });

    test('[Decision 61] [Decision 11] has every audit entry of the user, and an entry of its own', async (need) => {
      need('person_file', 'add', 'audit', 'list');
      const { client } = subject();
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'one' });
      await client.list({ user_id });
      await client.ask(pathOf(user_id));
      const lines = await fileOf(client, user_id);
      const entries = typed(lines, 'audit');
      expect(entries.map(({ action }) => action).sort()).toEqual(['add', 'list', 'person_file', 'person_file']);
      expect(entries.find(({ action }) => action === 'add')).toMatchObject({ memory_id: id, outcome: 'ok' });
      expect(lines.at(-1)).toMatchObject({ audit_entries: 4 });
    });

    test('[Decision 61] [Decision 14] needs to read every scope of the user', async (need) => {
      need('person_file');
      const user_id = freshUser();
      for (const rights of [
        { users: [freshUser()], grants: ['*:*'] },
        { users: [user_id], grants: ['read:a/*', 'write:*', 'delete:*', 'admin:*'] },
      ]) {
        expectError(await admit(rights).ask(pathOf(user_id)), 'scope_denied');
      }
      const allowed = admit({ users: [user_id], grants: ['read:*'] });
      expect((await fileOf(allowed, user_id)).at(-1)).toMatchObject({ type: 'end', memories: 0 });
    });

    test('[Decision 61] says what is not kept, and its name is safe in a header', async (need) => {
      need('person_file');
      const { versions, supports_audit } = subject().capabilities.features;
      const user_id = `${freshUser()}/ö"\\\r\n; x=`;
      const { headers } = await subject().client.ask(pathOf(user_id));
      expect(headers.get('content-disposition')).toMatch(/^attachment; filename="person-[\w.@-]+\.jsonl"$/);
      const lines = await fileOf(subject().client, user_id);
      expect(typed(lines, 'not_kept')).toHaveLength((versions ? 0 : 1) + (supports_audit ? 0 : 1));
    });
  });
