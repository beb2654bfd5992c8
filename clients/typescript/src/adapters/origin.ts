import type { MemoryClient } from '../client.ts';
import { UnsupportedCapabilityError } from '../errors.ts';
import type { Memory, NewMemory } from '../types.ts';

/**
 * Adds what a model decided to keep: its source is the application, and extracted, because the user did not ask for it to be
 * kept in these words. A table or index of another application may have no place for a source; then it has none.
 */
export async function addExtracted(client: MemoryClient, app: string, memory: NewMemory): Promise<Memory> {
  try {
    return await client.memories.add({ ...memory, source: { app, type: 'extracted' } });
  } catch (error) {
    if (!(error instanceof UnsupportedCapabilityError)) throw error;
    return client.memories.add(memory);
  }
}
