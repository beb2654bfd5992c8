import type { Client, Reply } from '../support/client.ts';
import { freshUser } from '../support/subject.ts';
import type { WireHit, WireMemory, WirePage } from '../support/wire.ts';

/** What may be found of one memory. An acknowledged write leaves one possibility, any other adds one. */
interface Entry {
  readonly contents: Set<string>;
  mayBeThere: boolean;
  mayBeGone: boolean;
}

export interface Ledger {
  /** One operation, drawn at random, and whether it was answered with success. Throws when the answer is wrong. */
  step(): Promise<boolean>;
  /** Compares everything with what the store holds. Resolves with the number of memories. */
  check(): Promise<number>;
}

const pick = <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(Math.random() * items.length)];

/**
 * The memories of one user, as a client knows them that asks one thing after the other and notes what was acknowledged.
 * It accepts right answers and the envelope of a backend that is down, nothing else. Some requests it gives up itself.
 */
export function openLedger(client: Client): Ledger {
  const user_id = freshUser();
  const entries = new Map<string, Entry>();
  /** Contents whose add was not acknowledged: they may turn up under an unknown id. */
  const unacknowledged = new Set<string>();
  let written = 0;
  const newContent = () => `note ${written++} about ${user_id}`;

  /** Undefined: not answered, or answered that the backend is down. */
  const send = async (path: string, method = 'GET', body?: object): Promise<Reply | undefined> => {
    const patience = Math.random() < 0.1 ? AbortSignal.timeout(1 + Math.floor(Math.random() * 20)) : undefined;
    const reply = await client
      .raw(path, {
        method,
        headers: body ? { 'content-type': 'application/json' } : {},
        ...(body && { body: JSON.stringify(body) }),
        ...(patience && { signal: patience }),
      })
      .catch((error: unknown) => {
        if (patience?.aborted) return undefined;
        throw error;
      });
    if (reply?.status !== 502) return reply;
    const { error } = reply.body as { error: { code: string; provider?: string } };
    if (error.code !== 'provider_error' || error.provider !== 'postgres')
      throw new Error(`wrong envelope: ${reply.text}`);
    return undefined;
  };
  const wrong = (what: string, reply: Reply) => new Error(`${what} answered ${reply.status}: ${reply.text}`);

  /** What is found must be possible, and what must be there has to be found where all is asked for. */
  const compare = (found: readonly WireMemory[], all: boolean) => {
    for (const { id, content } of found) {
      const entry = entries.get(id);
      if (entry ? !entry.mayBeThere || !entry.contents.has(content) : !unacknowledged.has(content)) {
        throw new Error(`${id} should not be found with: ${content}`);
      }
      // Deleted or changed later on, it is still known under its id.
      if (!entry) entries.set(id, { contents: new Set([content]), mayBeThere: true, mayBeGone: false });
    }
    if (!all) return;
    const ids = new Set(found.map(({ id }) => id));
    for (const [id, { mayBeGone }] of entries) if (!mayBeGone && !ids.has(id)) throw new Error(`${id} is lost`);
  };

  const add = async () => {
    const content = newContent();
    const reply = await send('/memories', 'POST', { user_id, content });
    if (!reply) return !unacknowledged.add(content);
    if (reply.status !== 201) throw wrong('add', reply);
    const { id } = reply.body as WireMemory;
    entries.set(id, { contents: new Set([content]), mayBeThere: true, mayBeGone: false });
    return true;
  };
  const search = async () => {
    const reply = await send(`/memories/search?${new URLSearchParams({ user_id, q: 'note about', limit: '20' })}`);
    if (!reply) return false;
    if (reply.status !== 200) throw wrong('search', reply);
    compare(
      (reply.body as { results: WireHit[] }).results.map(({ memory }) => memory),
      false,
    );
    return true;
  };
  const byId = async (id: string, entry: Entry, verb: 'get' | 'update' | 'delete') => {
    const content = newContent();
    const reply =
      verb === 'get'
        ? await send(client.byId(id))
        : await send(
            client.byId(id),
            verb === 'update' ? 'PATCH' : 'DELETE',
            verb === 'update' ? { content } : undefined,
          );
    if (!reply) {
      if (verb === 'update') entry.contents.add(content);
      if (verb === 'delete') entry.mayBeGone = true;
      return false;
    }
    if (reply.status === 404 && entry.mayBeGone) entry.mayBeThere = false;
    else if (reply.status !== (verb === 'delete' ? 204 : 200)) throw wrong(verb, reply);
    else if (verb === 'delete') Object.assign(entry, { mayBeThere: false, mayBeGone: true });
    else if (verb === 'get') compare([reply.body as WireMemory], false);
    else {
      // With an update that was not acknowledged, nobody knows which one came last.
      if (entry.contents.size === 1) entry.contents.clear();
      entry.contents.add(content);
    }
    return true;
  };

  return {
    step() {
      const known = pick([...entries].filter(([, { mayBeThere }]) => mayBeThere));
      const what = Math.random();
      if (!known || what < 0.35) return add();
      if (what < 0.5) return search();
      return byId(...known, what < 0.75 ? 'get' : what < 0.9 ? 'update' : 'delete');
    },
    async check() {
      const found: WireMemory[] = [];
      let cursor: string | undefined;
      do {
        const page: WirePage = await client.list({ user_id, limit: 200, cursor });
        found.push(...page.items);
        cursor = page.next_cursor ?? undefined;
      } while (cursor);
      compare(found, true);
      return found.length;
    },
  };
}
