import type { UsageMeter, UsageTotals } from '#contract';
import { feature } from '../feature.ts';
import { embeddingUsage } from './verb.ts';

/** The name of each metric, what it says, and where it is in the totals of an embedder. */
const TOTALS: readonly (readonly [name: string, help: string, field: keyof UsageTotals])[] = [
  ['omp_embedding_texts_total', 'Texts that the embedding service has embedded.', 'texts'],
  ['omp_embedding_tokens_total', 'Tokens that the embedding service reported.', 'tokens'],
  [
    'omp_embedding_texts_without_tokens_total',
    'Texts whose tokens the embedding service did not report.',
    'texts_without_tokens',
  ],
  [
    'omp_embedding_requests_total',
    'Requests that reached the embedding service, with retries and failures.',
    'requests',
  ],
];

export const usage = feature({
  verbs: { embedding_usage: embeddingUsage },
  metrics({ embedder, store }) {
    const mounted = store.mounts?.stores ?? [];
    if (mounted.length === 0 && !embedder?.usage) return [];
    /** Stores that share an embedder share its values: they are those of the first. */
    const read = (field: keyof UsageTotals) => {
      const seen = new Set<UsageMeter>();
      return [{ embedder, labels: {} }, ...mounted.map((one) => ({ ...one, labels: { store: one.name } }))].flatMap(
        ({ embedder: { usage } = {}, labels }) => {
          if (!usage || seen.has(usage)) return [];
          seen.add(usage);
          return [{ labels, value: usage.totals()[field] }];
        },
      );
    };
    return TOTALS.map(([name, help, field]) => ({
      ...{ kind: 'counter', name, help, labels: ['store'] },
      read: () => read(field),
    }));
  },
});
