import { expect, onTestFinished } from 'vitest';
import { Call, OmpError, type Provider } from '#contract';
import type { Store } from '../../src/core/store.ts';
import type { Client, Reply } from '../support/client.ts';
import { knownCallers } from '../support/known-callers.ts';
import { type Mount, openMounted } from '../support/mounted.ts';
import { freshUser, openSubject, type SubjectOptions } from '../support/subject.ts';
import type { WireMemory } from '../support/wire.ts';

export const memory =
  (scopes: 'native' | 'none' = 'native') =>
  (options: Partial<SubjectOptions>) =>
    openSubject({ provider: 'memory', options: { scopes }, ...options });

export const HANDBOOK: Mount = { name: 'handbook', mount: 'docs/handbook', open: memory() };
export const CRM: Mount = { name: 'crm', mount: 'crm', open: memory() };

/** A gateway on memory, with other memory mounted, and a client of its own user. */
export async function open(mounts: readonly Mount[] = [HANDBOOK, CRM], options: Partial<SubjectOptions> = {}) {
  const callers = knownCallers();
  const subject = await openMounted((own) => memory()({ ...own, ...options }), mounts, {
    authenticator: callers.authenticator,
    ...(options.embedder && { embedder: options.embedder }),
  });
  onTestFinished(subject.close);
  const user_id = freshUser();
  const { client } = subject;
  const add = (content: string, scope: string | null = null, more: object = {}) =>
    client.add({ user_id, content, ...(scope !== null && { scope }), ...more });
  const as = (...grants: string[]): Client => subject.as(callers.admit({ grants }));
  const root = subject.provider.mounts?.root as Required<Store>;
  const all = subject.provider as Required<Store>;
  return { subject, client, user_id, add, as, root, all };
}

/** The store with some methods replaced. */
export const altered =
  (change: (store: Required<Store>) => Partial<Store>) =>
  (store: Store): Store => ({ ...store, ...change(store as Required<Store>) });
/** Made once, because another store counts as another one that was opened. */
export const once = (make: (store: Store) => Store): ((store: Store) => Store) => {
  let made: Store | undefined;
  return (store) => {
    made ??= make(store);
    return made;
  };
};
export const down = (name: string): Promise<never> =>
  Promise.reject(new OmpError('provider_error', 'it does not answer', { provider: name, down: true }));
/** All its methods fail. */
export const failing = once(
  altered(({ name, ...store }) => ({
    ...Object.fromEntries(
      Object.entries(store)
        .filter(([member, value]) => typeof value === 'function' && member !== 'close')
        .map(([member]) => [member, () => down(name)]),
    ),
    versions: { list: () => down(name), purge: () => down(name), writtenIn: () => down(name) },
  })),
);

/** What the answer says in body and header. */
export const leftOut = ({ status, body, headers }: Reply) => ({
  status,
  partial: [(body as Record<string, unknown>)['x-partial'], headers.get('x-partial')],
  without: [(body as Record<string, unknown>)['x-without'], headers.get('x-without')],
});
export const COMPLETE = { status: 200, partial: [undefined, null], without: [undefined, null] };
export const PARTIAL = { ...COMPLETE, partial: [['crm'], 'crm'] };

export const reads = (client: Client, user_id: string): Promise<Reply>[] => [
  client.ask('/memories', { user_id }),
  client.ask('/memories/search', { user_id, q: 'tea' }),
  client.tell('POST', '/context', { user_id, query: 'tea' }),
  client.ask('/stats', { user_id }),
  client.ask('/users', { prefix: user_id }),
];

/** All pages of an export, each of which succeeds. */
export async function exported(client: Client, query: string) {
  const replies: Reply[] = [];
  const memories: WireMemory[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const reply = await client.ask(`/export?${query}${cursor === undefined ? '' : `&cursor=${cursor}`}`);
    expect(reply.status, reply.text).toBe(200);
    const page = reply.body as { memories: WireMemory[]; next_cursor: string | null };
    replies.push(reply);
    memories.push(...page.memories);
    cursor = page.next_cursor;
  }
  return { replies, memories };
}

/** The place of the users in `reads`: counts, of which no row tells where it is. */
export const USERS = 4;

/** A provider of others that knows nothing of `outside`. */
export function blindToMounts(provider: Provider): Provider {
  const blind = (member: unknown) =>
    typeof member === 'function' ? (request: unknown, call: unknown) => member(withoutOutside(request), call) : member;
  const all = Object.fromEntries(Object.entries(provider).map(([name, member]) => [name, blind(member)]));
  const list = blind(provider.versions?.list);
  return { ...all, versions: { ...provider.versions, list } } as Provider;
}

function withoutOutside(request: unknown): unknown {
  if (typeof request !== 'object' || request === null || request instanceof Call) return request;
  const { outside: _, ref, ...rest } = request as Readonly<Record<string, unknown>>;
  return ref === undefined ? rest : { ...rest, ref: withoutOutside(ref) };
}
