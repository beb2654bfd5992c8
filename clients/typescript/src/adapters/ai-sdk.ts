import type { LanguageModelMiddleware, Tool } from 'ai';
import { jsonSchema, tool } from 'ai';
import type { MemoryClient } from '../client.ts';
import type { CallOptions } from '../transport.ts';
import { type ToolOptions, toolDefinitions } from './tools.ts';

/** Memory tools for `generateText` and `streamText`. User and scope are fixed here, never chosen by the model. */
export const memoryTools = (client: MemoryClient, options: ToolOptions): Record<string, Tool> =>
  Object.fromEntries(
    toolDefinitions(client, { app: 'ai-sdk', ...options }).map(({ name, description, parameters, run }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema<Record<string, unknown>>(parameters as Parameters<typeof jsonSchema>[0]),
        execute: run,
      }),
    ]),
  );

export interface RecallOptions {
  readonly userId: string | string[];
  /** Prefix of the scope. */
  readonly scope?: string;
  /** Maximum tokens of the recalled memories; default 500. */
  readonly tokenBudget?: number;
  /** Options of the request; by default it may take a second and is not retried. */
  readonly request?: CallOptions;
  /** Called if recalling fails. The model is then called without memories. */
  readonly onError?: (error: unknown) => void;
}

/**
 * Puts memories that fit the last user message in front of the prompt, while streaming as well:
 * `wrapLanguageModel({ model, middleware: recall(client, { userId }) })`.
 */
export const recall = (
  client: MemoryClient,
  { userId, scope, tokenBudget, onError, request = { totalTimeout: 1_000, retries: 0 } }: RecallOptions,
): LanguageModelMiddleware => ({
  specificationVersion: 'v4',
  async transformParams({ params }) {
    const message = params.prompt.findLast(({ role }) => role === 'user');
    const parts = message?.role === 'user' ? message.content : [];
    const query = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
    if (!/\S/.test(query)) return params;
    try {
      const { text } = await client.context(
        { user_id: userId, query, scope: scope ?? null, token_budget: tokenBudget ?? null },
        { ...request, ...(params.abortSignal && { signal: params.abortSignal }) },
      );
      if (text === '') return params;
      const content = `What is known about the user from earlier conversations:\n${text}`;
      return { ...params, prompt: [{ role: 'system', content }, ...params.prompt] };
    } catch (error) {
      params.abortSignal?.throwIfAborted();
      onError?.(error);
      return params;
    }
  },
});
