import { describe, expect } from 'vitest';
import type { Client } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import type { WireRetention } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

/** Counts of one user over all pages, in the order of rules. The store has memories of other tests too. */
async function retained(client: Client, user_id: string, dry_run: boolean): Promise<string[]> {
  const counts = new Map<string, number>();
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const reply = await client.tell('POST', '/retention', { dry_run, ...(cursor && { cursor }) });
    expect(reply.status, reply.text).toBe(200);
    const page = reply.body as WireRetention;
    for (const { scope, rule, memories } of page.items.filter((item) => item.user_id === user_id)) {
      const key = `rule ${rule} ${scope}`;
      counts.set(key, memories + (counts.get(key) ?? 0));
    }
    cursor = page.next_cursor;
  }
  return [...counts].map(([key, count]) => `${key}: ${count}`).sort();
}

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString();

export const retentionSuite = (subject: GetSubject, admit: Admit) =>
  describe('retention', () => {
    const test = testOf(subject);

    test('[Decision 60] deletes what the first rule that matches is over for, as the dry run says, and nothing else', async (need) => {
      need('retention', 'import', 'list', 'scopes', 'tags');
      const { client, capabilities } = subject();
      const user_id = freshUser();
      const memories = (
        [
          ['kept: its tag', 60, 60, 'retention/chat', ['retention-keep', 'retention-temp']],
          ['deleted: its scope', 60, 1, 'retention/chat', []],
          ['deleted: its scope, before its tag', 31, 1, 'retention/chat', ['retention-temp']],
          ['deleted: another scope', 60, 60, 'retention/chat/a', []],
          ['kept: not old enough for its scope', 29, 29, 'retention/chat', ['retention-temp']],
          ['kept: beside the scope', 60, 60, 'retention', []],
          ['kept: no scope', 60, 60, undefined, []],
          ['deleted: its tag', 60, 8, undefined, ['retention-temp']],
          ['kept: changed since', 60, 6, undefined, ['retention-temp']],
          ['kept: another tag', 60, 60, undefined, ['retention']],
        ] as const
      ).map(([content, created, updated, scope, tags], n) => ({
        ...{ id: `${user_id}-${n}`, user_id, content, scope, tags },
        ...{ created_at: daysAgo(created), updated_at: daysAgo(updated) },
      }));
      const { status, text } = await client.tell('POST', '/import', { memories });
      expect(status, text).toBe(200);
      const contents = async () =>
        (await client.list({ user_id, limit: 50 })).items.map(({ content }) => content).sort();
      const all = memories.map(({ content }) => content).sort();
      expect(await contents()).toEqual(all);

      const due = ['rule 2 retention/chat/a: 1', 'rule 2 retention/chat: 2', 'rule 3 null: 1'];
      expect(await retained(client, user_id, true)).toEqual(due);
      expect(await contents()).toEqual(all);
      expect(await retained(client, user_id, false)).toEqual(due);
      expect(await contents()).toEqual(all.filter((content) => content.startsWith('kept')));
      expect(await retained(client, user_id, false)).toEqual([]);
      if (!capabilities.features.supports_audit) return;
      const entries = await client.audit({ user_id, limit: 100 });
      const deleted = entries.filter(({ action }) => action === 'delete').map(({ memory_id }) => memory_id);
      expect(deleted.sort()).toEqual(
        memories.filter(({ content }) => content.startsWith('deleted')).map(({ id }) => id),
      );
    });

    test('[Decision 60] needs to read and to delete everything', async (need) => {
      need('retention');
      for (const rights of [
        { users: ['ana'] },
        { grants: ['read:*', 'write:*', 'delete:work/*'] },
        { grants: ['delete:*'] },
        { untrusted: true },
      ])
        expectError(await admit(rights).tell('POST', '/retention', { dry_run: true }), 'scope_denied');
    });
  });
