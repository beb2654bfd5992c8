import type { MemoryClient } from '../client.ts';
import { type ToolOptions, toolDefinitions } from './tools.ts';

/**
 * Memory tools for function calling. `tools` is for the Responses API; `chatTools` is the same for Chat Completions.
 * `run` takes the name and the arguments of a call as the model wrote them and returns the output as text.
 */
export function memoryFunctions(client: MemoryClient, options: ToolOptions) {
  const definitions = toolDefinitions(client, { app: 'openai', ...options });
  const functions = definitions.map(({ name, description, parameters }) => ({ name, description, parameters }));
  return {
    tools: functions.map((one) => ({ type: 'function' as const, strict: false, ...one })),
    chatTools: functions.map((one) => ({ type: 'function' as const, function: one })),
    async run(name: string, input: string): Promise<string> {
      const definition = definitions.find((one) => one.name === name);
      if (!definition) return JSON.stringify({ error: `no tool has the name ${name}` });
      let args: Record<string, unknown>;
      try {
        args = JSON.parse(input);
      } catch {
        return JSON.stringify({ error: 'the arguments are not JSON' });
      }
      return JSON.stringify(await definition.run(args));
    },
  };
}
