import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { type Embedder, ORIGIN, type Provider } from '#contract';
import type { Client, Reply } from '../support/client.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { laterMoment, type Subject, type SubjectOptions } from '../support/subject.ts';
import { ERRORS, type WireCapabilities, type WireErrorCode, type WireMemory } from '../support/wire.ts';
import { type Backdoor, bearer, openBackdoor } from './callers.ts';
import { type Case, changeCases, named, OWNERS, readCases, SCOPES, SEEDER, USERS, WORD, type World } from './cases.ts';
import type { Key } from './rule.ts';

/** Opens the gateway on the provider under test. */
export type Open = (options: Pick<SubjectOptions, 'authenticator' | 'embedder' | 'alter'>) => Promise<Subject>;

/** Everything the cases of one provider need. */
export interface Bench {
  readonly subject: Subject;
  readonly world: World;
  readonly door: Backdoor;
  /** Texts embedded so far. */
  readonly embedded: () => number;
  /** Verbs by id that reached the backend so far. */
  readonly lookUps: readonly string[];
  /** Counts the cases by outcome. */
  readonly tally: Map<WireErrorCode | 'ok', number>;
  /** The messages of errors so far, by code. */
  readonly messages: Map<WireErrorCode, Set<string>>;
}

export async function openBench(
  open: Open,
  alter: (provider: Provider) => Provider = (one) => one,
  mounts: readonly string[] = [],
): Promise<Bench> {
  const door = openBackdoor();
  const { embedder, embedded } = countingEmbedder();
  const lookUps: string[] = [];
  const subject = await open({
    authenticator: door.authenticator,
    embedder,
    alter: (provider) => noteLookUps(lookUps, alter(provider)),
  });
  const caller = (app: string) => subject.as(bearer(door.admit(app)));
  const world = await openWorld(caller(SEEDER), caller('master'), mounts);
  return { subject, world, door, embedded, lookUps, tally: new Map(), messages: new Map() };
}

export const featuresOf = ({ subject }: Pick<Bench, 'subject'>) => {
  const { features, 'x-stores': stores = [] } = subject.capabilities as typeof subject.capabilities & {
    readonly 'x-stores'?: readonly Pick<WireCapabilities, 'features'>[];
  };
  const { supports_audit: audited, stats: counted, etags } = features;
  const versioned = [{ features }, ...stores].every((one) => one.features.versions);
  return { audited, counted, etags, versioned };
};

function countingEmbedder(): { embedder: Embedder; embedded: () => number } {
  const inner = hashingEmbedder();
  let count = 0;
  const embedder: Embedder = {
    ...inner,
    embed(texts, purpose, call) {
      count += texts.length;
      return inner.embed(texts, purpose, call);
    },
  };
  return { embedder, embedded: () => count };
}

function noteLookUps(noted: string[], { get, update, delete: remove, ...provider }: Provider): Provider {
  const note =
    <Arguments extends readonly [unknown, ...unknown[]], Result>(verb: string, ask: (...given: Arguments) => Result) =>
    (...given: Arguments): Result => {
      noted.push(verb);
      return ask(...given);
    };
  return {
    ...provider,
    get: note('get', get),
    ...(update && { update: note('update', update) }),
    ...(remove && { delete: note('delete', remove) }),
  };
}

/** `seeder` makes the targets and nothing else, `master` looks after the rest. Both may do everything. */
async function openWorld(seeder: Client, master: Client, mounts: readonly string[]): Promise<World> {
  const due = new Map<string, WireMemory>();
  const targets: WireMemory[] = [];
  for (const user_id of OWNERS) {
    for (const scope of SCOPES) {
      // Of the same millisecond, those of the root store would come first.
      await laterMoment();
      const memory = await seeder.add({ user_id, scope, content: `${WORD} note of ${user_id} in ${scope}` });
      targets.push(memory);
      due.set(memory.id, memory);
    }
  }
  const permanent = new Set(due.keys());
  return {
    targets,
    async copy({ content, user_id, scope }) {
      const memory = await master.add({ content, user_id, scope });
      due.set(memory.id, memory);
      return memory;
    },
    expect: (memory) => void due.set(memory.id, memory),
    expectGone: (id) => void due.delete(id),
    async differences() {
      const pages = await Promise.all(USERS.map((user_id) => master.list({ user_id, limit: 500 })));
      const stored = new Map(pages.flatMap(({ items }) => items).map((memory) => [memory.id, memory]));
      return (
        [...new Set([...due.keys(), ...stored.keys()])]
          .map((id) => ({ due: due.get(id), stored: stored.get(id) }))
          // A caller may not read the origin of what it has changed.
          .filter((pair) => !isDeepStrictEqual({ ...pair.due, [ORIGIN]: null }, { ...pair.stored, [ORIGIN]: null }))
      );
    },
    mountOf: (scope) => mounts.find((mount) => scope === mount || scope?.startsWith(`${mount}/`)),
    async tidy() {
      const extra = [...due.keys()].filter((id) => !permanent.has(id));
      await Promise.all(extra.map((id) => master.remove(id)));
      for (const id of extra) due.delete(id);
    },
  };
}

/** How many mistakes a failure shows: a broken rule fails everywhere. */
const SHOWN = 8;
const AT_ONCE = 10;

/** Tries every case with one key. Throws with the names of the cases that went wrong. */
export async function checkKey(key: Key, client: Client, bench: Bench): Promise<void> {
  const { world, tally } = bench;
  const reads = readCases(key, world, featuresOf(bench));
  const changes = changeCases(key, world, featuresOf(bench));
  const refused = [...reads, ...changes].filter(({ code }) => code !== undefined);
  for (const { code = 'ok' } of [...reads, ...changes]) tally.set(code, (tally.get(code) ?? 0) + 1);

  const before = bench.embedded();
  const wrong: unknown[] = (
    await Promise.all(refused.map(async (one) => wrongRefusal(one, await one.send(client), bench)))
  ).filter(Boolean);
  if (bench.embedded() !== before) wrong.push('a text was embedded for a refused request');

  const read = reads.filter(({ code }) => code === undefined);
  const look = async ({ name, send, read, value }: (typeof reads)[number]) => {
    const reply = await send(client);
    const given = reply.status === 200 ? read(reply.body) : reply;
    if (!isDeepStrictEqual(given, value)) wrong.push({ name, given, due: value });
  };
  // However slow the machine is, none of so few waits too long for the others of its caller (Decision 29).
  for (let at = 0; at < read.length; at += AT_ONCE) await Promise.all(read.slice(at, at + AT_ONCE).map(look));

  const changed = changes.filter(({ code }) => code === undefined);
  wrong.push(...(await Promise.all(changed.map(({ succeed }) => succeed(client, world)))).filter(Boolean));
  wrong.push(...(await world.differences()));
  await world.tidy();
  expect(wrong.slice(0, SHOWN), `${wrong.length} wrong for ${named(key)}`).toEqual([]);
}

/** A refusal is exactly its envelope: it depends on nothing that is hidden. Answers what is wrong with it. */
function wrongRefusal(
  { name, code, status: expected, naming }: Case,
  { status, body, headers }: Reply,
  { messages }: Bench,
): unknown {
  if (code === undefined) return undefined;
  const { error } = (body ?? {}) as { error?: { message: string; provider?: string } };
  const message = error?.message ?? '';
  const due = {
    code,
    message,
    type: ERRORS[code].type,
    ...(code === 'unsupported_capability' && { provider: error?.provider }),
    request_id: headers.get('x-request-id'),
  };
  if (status !== (expected ?? ERRORS[code].status) || !isDeepStrictEqual(body, { error: due }))
    return { name, status, body, due };
  if (!naming) messages.set(code, (messages.get(code) ?? new Set()).add(message));
  return undefined;
}
