import type { Config } from './schema.ts';

/** What the embedder that `embedding.kind` names is opened with. Of no use in keyword mode, which has no embedder. */
export function embeddingOptions({ embedding }: Config) {
  const {
    kind,
    model,
    dimensions,
    base_url,
    api_key = '',
    timeout_ms,
    batch_size,
    max_waiting,
    cache_size,
    workers,
  } = embedding;
  if (kind === 'local') return { kind, max_waiting, cache_size, workers };
  return { kind, model, dimensions, base_url, api_key, timeout_ms, batch_size, max_waiting, cache_size };
}
