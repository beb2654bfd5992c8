import type { Client } from '../support/client.ts';
import { withoutOrigin } from '../support/origin.ts';
import type { WireMemory } from '../support/wire.ts';

/** All memories with all fields but the origin, which a move changes, in one order. */
export async function all({ client }: { readonly client: Client }): Promise<WireMemory[]> {
  const memories: WireMemory[] = [];
  for (let cursor: string | undefined; ; ) {
    const { body } = await client.ask('/export', { limit: 500, ...(cursor && { cursor }) });
    const page = body as { memories: WireMemory[]; next_cursor: string | null };
    memories.push(...page.memories);
    if (!page.next_cursor) break;
    cursor = page.next_cursor;
  }
  return memories.map(withoutOrigin).sort((a, b) => (a.id < b.id ? -1 : 1));
}
