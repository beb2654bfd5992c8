/** The tools that agents get by default. */
export const DEFAULT_TOOLS = [
  'add_memory',
  'search_memories',
  'list_memories',
  'get_memory',
  'update_memory',
  'delete_memory',
  'get_context',
] as const;

/** All tools. `search` and `fetch` are for clients that call no others, such as connectors of ChatGPT. */
export const TOOL_NAMES = [...DEFAULT_TOOLS, 'search', 'fetch'] as const;

/** Values of one message. A call with all the tags and ids that a memory may have needs 150; the SDK takes 20 to 30 µs for each. */
export const MAX_MESSAGE_VALUES = 500;

/** Characters of an error as JSON: enough for a message of ours, whatever it escapes. */
export const MAX_ERROR_LENGTH = 8_000;

export type ToolName = (typeof TOOL_NAMES)[number];
