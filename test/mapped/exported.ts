import { expect } from 'vitest';
import type { Client } from '../support/client.ts';
import type { WireMemory } from '../support/wire.ts';

/** All pages of an export, each of at most one row. */
export async function exported(client: Client, query: object = {}): Promise<(WireMemory & { vector?: string })[]> {
  const memories = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const { body, status, text } = await client.ask('/export', { limit: 1, ...query, ...(cursor && { cursor }) });
    expect(status, text).toBe(200);
    const page = body as { memories: WireMemory[]; next_cursor: string | null };
    memories.push(...page.memories);
    cursor = page.next_cursor;
  }
  return memories;
}
