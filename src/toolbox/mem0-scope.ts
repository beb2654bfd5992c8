/** What memories of mem0 have instead of a scope. */
export interface Mem0Names {
  readonly agent?: string | undefined;
  readonly run?: string | undefined;
}

/** Any text as one segment of a scope. `-` stands for none, so that every memory of an agent is below its segment. */
const segment = (id: string): string => (id === '-' ? '%2D' : encodeURIComponent(id).replaceAll('*', '%2A'));

/** What the scopes of an agent begin with, up to a slash. */
export const mem0Prefix = (agent: string): string => `mem0/agent/${segment(agent)}`;

/** The scope of these; with `*` for what is not given, the glob of all that have them. Null: neither is given. */
export function mem0Scope({ agent, run }: Mem0Names, absent: '-' | '*' = '-'): string | null {
  if (agent === undefined && run === undefined) return null;
  const prefix = agent === undefined ? `mem0/agent/${absent}` : mem0Prefix(agent);
  return `${prefix}/run/${run === undefined ? absent : segment(run)}`;
}
