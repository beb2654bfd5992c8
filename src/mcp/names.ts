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
export type ToolName = (typeof TOOL_NAMES)[number];
