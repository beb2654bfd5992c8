import { expect, it } from 'vitest';
import { OF_THE_ROOT, type OmpError } from '#contract';
import type { Demands } from '../../src/core/demands.ts';
import { toGrants } from '../../src/core/grants.ts';
import { VERB_TABLE } from '../../src/verbs/index.ts';
import type { Verb } from '../../src/verbs/verb.ts';
import { call, openMemory } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { gateOn, recordingLog } from '../support/subject.ts';
import { KEYS, named } from './cases.ts';
import { globsOf, type Key, reaches } from './rule.ts';

const DEMANDING = Object.entries<Verb>(VERB_TABLE).filter(([, { demands }]) => demands !== undefined);

const MANAGING = [
  ...['list_keys', 'create_key', 'revoke_key', 'embedding_usage', 'list_webhooks', 'create_webhook', 'delete_webhook'],
  ...['test_webhook', 'resume_webhook', 'rotate_webhook'],
];
/** What the decisions ask of each verb, written from their text: a verb that forgets a demand is no verb of this list. */
const DUE: Readonly<Record<string, Demands>> = {
  audit: { read: 'some', users: { in: 'user_id' } },
  users: { read: 'some' },
  erase: { delete: 'all', users: { in: 'id' }, trusted: true },
  rollback: { write: 'all', delete: 'all', users: { in: 'id' }, trusted: true },
  retention: { read: 'all', delete: 'all', users: 'all', trusted: true },
  stats: { read: 'some', users: { in: 'user_id' } },
  person_file: { read: 'all', users: { in: 'id' } },
  export: { read: 'all', users: { in: 'user_id' } },
  import: { write: 'all', users: 'all' },
  ...Object.fromEntries(MANAGING.map((name) => [name, { admin: true }])),
  ...Object.fromEntries(['get_freeze', 'freeze', 'unfreeze'].map((name) => [name, { admin: 'unless open' }])),
};

it('[Decision 14] [Decision 41] each verb demands what is due', () => {
  expect(Object.fromEntries(DEMANDING.map(([name, { demands }]) => [name, demands]))).toEqual(DUE);
});

/** What the verbs need besides the fields that name a user or something else by its id. */
const FIELDS = {
  since: '2026-01-01',
  until: '2026-01-02',
  memories: [{ id: 'mem_1', content: 'x', user_id: 'ana', created_at: '2026-01-01T00:00:00Z' }],
  name: 'k',
  url: 'https://example.com/',
  dry_run: true,
};

/** The input of a verb about this user; of one that names none, as far as it can. */
const inputOf = ({ input, path, demands }: Verb, user: string | undefined): object => {
  const named = typeof demands?.users === 'object' ? demands.users.in : undefined;
  const fields = { ...(path.includes('{id}') && { id: 'k3j2h1g0f9e8' }), grants: ['read:*'], ...FIELDS };
  const known = Object.entries(fields).filter(([name]) => name in input.shape && name !== 'users');
  return { ...Object.fromEntries(known), ...(named !== undefined && { [named]: user }) };
};

/** The rule in plain words: each demand by itself. */
function isMet(demands: Demands, key: Key, untrusted: boolean, user: string | undefined): boolean {
  for (const action of ['read', 'write', 'delete'] as const) {
    if (demands[action] === 'all' && !globsOf(key, action).includes('*')) return false;
    if (demands[action] === 'some' && globsOf(key, action).length === 0) return false;
  }
  const of = typeof demands.users === 'object' ? user : undefined;
  if (demands.users !== undefined && !(of === undefined ? key.users === null : reaches(key, of))) return false;
  if (untrusted && (demands.trusted || demands.admin)) return false;
  return demands.admin === undefined || key.grants.includes('admin:*');
}

/** The same object, of which every call is noted. The gate writes audit entries whatever becomes of a request. */
function watched<Subject extends object>(subject: Subject, reached: string[], path = ''): Subject {
  return new Proxy(subject, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      const label = `${path}${String(name)}`;
      if (typeof member === 'function' && label !== 'audit.record') {
        return (...args: unknown[]) => {
          reached.push(label);
          return member.apply(target, args);
        };
      }
      const isPart = typeof member === 'object' && member !== null && name !== 'capabilities';
      return isPart ? watched(member, reached, `${label}.`) : member;
    },
  });
}

/** What only the tables in Postgres have: here it only notes that it was asked. */
const noting = (part: string, reached: string[]) =>
  new Proxy({} as never, {
    get: (_, name) => async () => {
      reached.push(`${part}.${String(name)}`);
    },
  });

it.for(DEMANDING)(
  '[Decision 14] [SPEC Errors scope_denied] "%s" runs for callers that meet its demands',
  async ([, verb]) => {
    const reached: string[] = [];
    const memory = storeOf(await openMemory());
    const lacking = OF_THE_ROOT.filter((part) => memory[part] === undefined);
    const store = watched(
      { ...memory, ...Object.fromEntries(lacking.map((part) => [part, noting(part, reached)])) },
      reached,
    );
    const { gate, auditQueue } = gateOn(store as typeof memory, recordingLog(), {
      webhooks: noting('webhooks', reached),
    });
    const outcomes = new Set<boolean>();
    const users = typeof verb.demands?.users === 'object' ? ['ana', undefined] : [undefined];
    for (const key of KEYS) {
      for (const untrusted of [false, true]) {
        for (const user of users) {
          const input = inputOf(verb, user);
          if (!verb.input.safeParse(input).success) continue;
          const principal = { id: 'key:own', app: 'own', users: key.users, grants: toGrants(key.grants), untrusted };
          reached.length = 0;
          const failure = await gate
            .session(principal, 'http')
            .run(verb, input, call)
            .then(
              () => undefined,
              (error: OmpError) => error.code,
            );
          const met = isMet(verb.demands as Demands, key, untrusted, user);
          const label = `${named(key)}${untrusted ? ', untrusted' : ''}, of ${user}: ${failure}`;
          if (met) expect(failure, label).not.toBe('scope_denied');
          else expect([failure, ...reached], label).toEqual(['scope_denied']);
          outcomes.add(met);
        }
      }
    }
    expect([...outcomes].sort()).toEqual([false, true]);
    await auditQueue.close();
  },
);
