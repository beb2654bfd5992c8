import type { Memory } from '#contract';

/**
 * A record as the client sees it: its `x-` keys stand beside the protocol's own (Decision 6).
 * Spelled out because lists make hundreds of these: copying by rest and spread takes several times as long.
 */
export function toWire(memory: Memory): Omit<Memory, 'extensions'> {
  return {
    id: memory.id,
    content: memory.content,
    user_id: memory.user_id,
    created_at: memory.created_at,
    updated_at: memory.updated_at,
    scope: memory.scope,
    tags: memory.tags,
    source: memory.source,
    confidence: memory.confidence,
    valid_from: memory.valid_from,
    valid_to: memory.valid_to,
    supersedes: memory.supersedes,
    embedding_model: memory.embedding_model,
    status: memory.status,
    ...memory.extensions,
  };
}
