import type { MemoryClient } from '../client.ts';
import { ApiError } from '../errors.ts';
import type { Memory } from '../types.ts';
import { addExtracted } from './origin.ts';

export interface ToolOptions {
  /** The user of the memories. The model cannot choose it. */
  readonly userId: string;
  /** Scope of new memories; the tools see only what is in it or below. The model cannot choose. */
  readonly scope?: string;
  /** The source of what the model adds; default: the name of the adapter. */
  readonly app?: string;
}

/** A tool as plain JSON schema, as function calling takes it, and what runs it. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly parameters: {
    type: 'object';
    properties: Record<string, object>;
    required: string[];
    additionalProperties: false;
  };
  /**
   * Wrong input and an error of the gateway are a result `{ error }`, so that the model can act on it. Other errors are
   * thrown.
   */
  run(input: Record<string, unknown> | null): Promise<unknown>;
}

type Input = { content: string; query: string; id: string; limit: number; current: boolean };

const MOST_RESULTS = 100;
const text = (description: string) => ({ type: 'string', description });
const limit = { type: 'integer', minimum: 1, maximum: MOST_RESULTS, description: 'Maximum results; default 10.' };
const current = { type: 'boolean', description: 'False: also superseded and expired memories; default true.' };

/** Tools for a model: add, search, list, update and delete the memories of one user. */
export function toolDefinitions(
  client: MemoryClient,
  { userId: user_id, scope, app }: ToolOptions & { readonly app: string },
): ToolDefinition[] {
  const isInside = (memory: Memory) =>
    scope === undefined || memory.scope === scope || memory.scope?.startsWith(`${scope}/`) === true;
  /** The id, if the model may see the memory. */
  const own = async (id: string): Promise<string> => {
    const memory = await client.memories.get(id, { userId: user_id });
    if (memory.user_id !== user_id || !isInside(memory)) throw new Refused('no memory has this id');
    return id;
  };

  return [
    define(
      'add_memory',
      'Remember a short fact about the user.',
      { content: text('The fact, one sentence.') },
      async ({ content }) =>
        brief(await addExtracted(client, app, { user_id, content, ...(scope !== undefined && { scope }) })),
    ),
    define(
      'search_memories',
      'Find what is known about the user.',
      { query: text('What to look for.'), limit, current },
      async ({ query, limit: most, current }) => {
        // The prefix of a scope also finds scopes beside it ("acme-corp" for "acme").
        // A memory there must not stand for a copy inside.
        const options = scope === undefined ? { limit: most, distinct: true } : { scope, limit: MOST_RESULTS };
        const { results } = await client.memories.search({ user_id, q: query, current, untrusted: false, ...options });
        const inside = results.filter(({ memory }) => isInside(memory)).slice(0, most);
        return inside.map(({ memory, ...rest }) => ({ ...brief(memory), ...rest }));
      },
    ),
    define(
      'list_memories',
      'List the newest memories of the user.',
      { limit, current },
      async ({ limit: most, current }) => {
        const memories: object[] = [];
        const below = scope === undefined ? {} : { scope: `${scope}*` };
        for await (const memory of client.memories.list({ user_id, current, untrusted: false, ...below })) {
          if (isInside(memory)) memories.push(brief(memory));
          if (memories.length >= most) break;
        }
        return memories;
      },
    ),
    define(
      'update_memory',
      'Correct a memory.',
      { id: text('Id of the memory.'), content: text('The corrected fact.') },
      async ({ id, content }) => brief(await client.memories.update(await own(id), { content }, { userId: user_id })),
    ),
    define('delete_memory', 'Forget a memory for good.', { id: text('Id of the memory.') }, async ({ id }) => {
      await client.memories.delete(await own(id), { userId: user_id });
      return { deleted: id };
    }),
  ];
}

class Refused extends Error {}

/** Not every model keeps to the schema. */
function checkInput(input: Record<string, unknown> | null, required: readonly string[]): Input {
  for (const name of required) {
    if (typeof input?.[name] !== 'string') throw new Refused(`${name}: must be a text`);
  }
  const { id, limit: number } = input ?? {};
  const most = number ?? 10;
  if (id === '' || id === '.' || id === '..') throw new Refused('no memory has this id');
  if (!Number.isInteger(most) || Number(most) < 1 || Number(most) > MOST_RESULTS) {
    throw new Refused(`limit: must be a whole number from 1 to ${MOST_RESULTS}`);
  }
  const current = input?.current ?? true;
  if (typeof current !== 'boolean') throw new Refused('current: must be true or false');
  return { ...(input as unknown as Input), limit: Number(most), current };
}

const brief = ({ id, content, created_at }: Memory) => ({ id, content, created_at });

function define(
  name: string,
  description: string,
  properties: Record<string, object>,
  work: (input: Input) => Promise<unknown>,
): ToolDefinition {
  const required = Object.keys(properties).filter((property) => property !== 'limit' && property !== 'current');
  return {
    name,
    description,
    parameters: { type: 'object', properties, required, additionalProperties: false },
    async run(input) {
      try {
        return await work(checkInput(input, required));
      } catch (error) {
        if (error instanceof ApiError || error instanceof Refused) return { error: error.message };
        throw error;
      }
    },
  };
}
