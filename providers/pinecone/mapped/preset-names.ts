/** Whose records an index holds; `custom` names the fields itself. */
export const PRESET_NAMES = [
  'langchain',
  'llamaindex',
  'mem0',
  'mem0-ts',
  'haystack',
  'spring-ai',
  'integrated',
  'custom',
] as const;
export type PresetName = (typeof PRESET_NAMES)[number];
