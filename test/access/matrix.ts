import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { Client, Reply } from '../support/client.ts';
import { ERRORS } from '../support/wire.ts';
import type { Bench } from './bench.ts';
import { named } from './cases.ts';
import { changeCases } from './change-cases.ts';
import { type Case, readCases } from './read-cases.ts';
import type { Key } from './rule.ts';

/** Shown of a failure; a broken rule fails everywhere. */
export const SHOWN = 8;

/** Puts every case to one key. Throws with the names of the cases that went wrong. */
export async function checkKey(key: Key, client: Client, bench: Bench): Promise<void> {
  const { world, tally } = bench;
  const reads = readCases(key, world, bench.expected.audit);
  const changes = changeCases(key, world);
  const refused = [...reads, ...changes].filter(({ code }) => code !== undefined);
  for (const { code = 'ok' } of [...reads, ...changes]) tally.set(code, (tally.get(code) ?? 0) + 1);

  const before = bench.embedded();
  const wrong: unknown[] = (
    await Promise.all(refused.map(async (one) => wrongRefusal(one, await one.send(client), bench)))
  ).filter(Boolean);
  if (bench.embedded() !== before) wrong.push('a text was embedded for a request that was refused');

  const read = reads.filter(({ code }) => code === undefined);
  await Promise.all(
    read.map(async ({ name, send, read, value }) => {
      const reply = await send(client);
      const given = reply.status === 200 ? read(reply.body) : reply;
      if (!isDeepStrictEqual(given, value)) wrong.push({ name, given, due: value });
    }),
  );

  const changed = changes.filter(({ code }) => code === undefined);
  wrong.push(...(await Promise.all(changed.map(({ succeed }) => succeed(client, world)))).filter(Boolean));
  wrong.push(...(await world.differences()));
  await world.tidy();
  expect(wrong.slice(0, SHOWN), `${wrong.length} wrong for ${named(key)}`).toEqual([]);
}

/** A refusal is exactly its envelope: nothing in it may depend on what is hidden. Answers what is wrong with it. */
export function wrongRefusal({ name, code }: Case, { status, body, headers }: Reply, { messages }: Bench): unknown {
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
  if (status !== ERRORS[code].status || !isDeepStrictEqual(body, { error: due })) return { name, status, body, due };
  messages.set(code, (messages.get(code) ?? new Set()).add(message));
  return undefined;
}
