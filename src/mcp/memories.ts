import type { Call, OmpError } from '#contract';
import type { Verbs } from '../core/access.ts';
import type { ContextBlock } from '../core/context.ts';
import type { Operations, WireMemory } from '../http/operations.ts';

/** Fields of the protocol, as a tool of an agent sends them; undefined ones are left out. */
export type Fields = Readonly<Record<string, unknown>>;

/** The verbs of the protocol for one user: what the tools of agents are made of. All throw `OmpError`. */
export interface UserMemories {
  add(fields: Fields, signal: AbortSignal): ReturnType<Operations['add']>;
  list(query: Fields, signal: AbortSignal): ReturnType<Operations['list']>;
  search(query: Fields, signal: AbortSignal): ReturnType<Operations['search']>;
  get(id: string, signal: AbortSignal): Promise<WireMemory>;
  update(id: string, fields: Fields, signal: AbortSignal): Promise<WireMemory>;
  delete(id: string, signal: AbortSignal): Promise<void>;
  context(fields: Fields, signal: AbortSignal): Promise<ContextBlock>;
}

/** Who calls a tool. */
export interface ToolCaller {
  /** Throws `invalid_request` if no user is known, with what to do about it. */
  memories(): UserMemories;
  /** The error that the agent gets. Logs the causes, which the agent must not see. */
  toError(thrown: unknown): OmpError;
}

/** `?name=value` of every field that is given. */
export function queryOf(fields: Fields): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

export interface VerbsOfUser {
  readonly operations: Operations;
  readonly verbs: Verbs;
  readonly user_id: string;
  /** The call of a tool; the signal aborts when the agent cancels it. */
  callOf(signal: AbortSignal): Call;
}

/** In this process. */
export function overVerbs({ operations, verbs, user_id, callOf }: VerbsOfUser): UserMemories {
  const target = (id: string) => ({ id, user_id });
  return {
    add: (fields, signal) => operations.add(verbs, { ...fields, user_id }, undefined, callOf(signal)),
    list: (query, signal) => operations.list(verbs, queryOf({ ...query, user_id }), callOf(signal)),
    search: (query, signal) => operations.search(verbs, queryOf({ ...query, user_id }), callOf(signal)),
    get: (id, signal) => operations.get(verbs, target(id), callOf(signal)),
    update: (id, fields, signal) => operations.update(verbs, target(id), fields, callOf(signal)),
    delete: (id, signal) => operations.delete(verbs, target(id), callOf(signal)),
    context: (fields, signal) => operations.context(verbs, { ...fields, user_id }, callOf(signal)),
  };
}
