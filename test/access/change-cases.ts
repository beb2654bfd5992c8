import { isDeepStrictEqual } from 'node:util';
import type { Client, Reply } from '../support/client.ts';
import type { WireMemory } from '../support/wire.ts';
import { DESTINATIONS, SCOPES, USERS } from './cases.ts';
import { type Case, describeTarget, UNKNOWN_ID } from './read-cases.ts';
import { type Key, refusalById, refusalOfAdd } from './rule.ts';
import type { World } from './world.ts';

/** A request that would change something. */
export interface ChangeCase extends Case {
  /** Sends it where it is allowed and tells the world; answers what was wrong with the reply, if anything. */
  succeed(client: Client, world: World): Promise<unknown>;
}

/** Add, update, update that moves, and delete of everything a key might reach for. */
export const changeCases = (key: Key, { targets }: World): ChangeCase[] => [
  ...USERS.flatMap((user_id) => SCOPES.map((scope) => addCase(key, user_id, scope))),
  ...[...targets, undefined].flatMap((target) => [
    updateCase(key, target),
    ...DESTINATIONS.map((scope) => updateCase(key, target, scope)),
    deleteCase(key, target),
  ]),
];

function addCase(key: Key, user_id: string, scope: string | null): ChangeCase {
  const name = `add a record of ${user_id} in ${scope ?? 'no scope'}`;
  const input = { user_id, scope, content: `made by: ${name}` };
  const send = ({ tell }: Client) => tell('POST', '/memories', input);
  return {
    name,
    send,
    code: refusalOfAdd(key, input),
    async succeed(client, world) {
      const reply = await send(client);
      if (reply.status !== 201) return { name, reply };
      const memory = reply.body as WireMemory;
      world.expect(memory);
      const { content, user_id: owner, scope: place = null } = memory;
      return isDeepStrictEqual({ content, user_id: owner, scope: place }, input) ? undefined : { name, memory };
    },
  };
}

function updateCase(key: Key, target: WireMemory | undefined, moveTo?: string): ChangeCase {
  const name = `update ${describeTarget(target)}${moveTo ? `, moving it to ${moveTo}` : ''}`;
  // Should the update wrongly happen, the record tells which one it was.
  const patch = { content: `changed by: ${name}`, ...(moveTo && { scope: moveTo }) };
  const send = (id: string, { tell, byId }: Client): Promise<Reply> => tell('PATCH', byId(id), patch);
  return {
    name,
    send: (client) => send(target?.id ?? UNKNOWN_ID, client),
    code: refusalById(key, 'write', target, { moveTo }),
    async succeed(client, world) {
      const before = await world.copy(target as WireMemory);
      const reply = await send(before.id, client);
      const after = reply.body as WireMemory;
      const due = { ...before, ...patch, updated_at: after.updated_at };
      world.expect(due);
      const later = String(after.updated_at) > String(before.updated_at);
      return reply.status === 200 && later && isDeepStrictEqual(after, due) ? undefined : { name, before, reply };
    },
  };
}

function deleteCase(key: Key, target: WireMemory | undefined): ChangeCase {
  const name = `delete ${describeTarget(target)}`;
  const send = (id: string, { tell, byId }: Client): Promise<Reply> => tell('DELETE', byId(id));
  return {
    name,
    send: (client) => send(target?.id ?? UNKNOWN_ID, client),
    code: refusalById(key, 'delete', target),
    async succeed(client, world) {
      const { id } = await world.copy(target as WireMemory);
      const reply = await send(id, client);
      world.expectGone(id);
      return reply.status === 204 && reply.text === '' ? undefined : { name, reply };
    },
  };
}
