import type { z } from 'zod';
import type { Call, OmpError } from '#contract';
import type { Store } from '../core/with-embedder.ts';
import type { Session } from '../verbs/gate.ts';
import type { Verb } from '../verbs/verb.ts';

/** The verbs of the protocol for one user: what the tools of agents are made of. */
export interface UserMemories {
  /** Adds the user to the input. Throws `OmpError`. `signal` aborts when the agent cancels its call. */
  run<Input extends z.ZodObject, Output, Need extends keyof Store>(
    verb: Verb<Input, Output, Need>,
    input: object,
    signal: AbortSignal,
  ): Promise<Output>;
}

/** Who calls a tool. */
export interface ToolCaller {
  /** Throws `invalid_request` if no user is known, with what to do about it. */
  memories(): UserMemories;
  /** The error that the agent gets. Logs the causes, which the agent must not see. */
  toError(error: unknown): OmpError;
}

interface SessionOfUser {
  readonly session: Session;
  readonly user_id: string;
  /** The call of a tool; the signal aborts when the agent cancels it. */
  callOf(signal: AbortSignal): Call;
}

/** The memories of a user in this process. */
export const inProcess = ({ session, user_id, callOf }: SessionOfUser): UserMemories => ({
  run: (verb, input, signal) => session.run(verb, forUser(verb, input, user_id), callOf(signal)),
});

/** The input with the user that the tools act for, whatever the agent sent. */
export function forUser({ name }: Pick<Verb, 'name'>, input: object, user_id: string): object {
  if (name === 'add') return { memory: { ...(input as { memory: object }).memory, user_id } };
  return { ...input, user_id: name === 'search' ? [user_id] : user_id };
}
