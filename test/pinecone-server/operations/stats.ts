import type { Operation } from '../operation.ts';
import { check } from '../refusal.ts';

/** How many records each namespace has, as far as queries see them. */
export const stats: Operation = ({ body }, { settings, store }) => {
  check(!('filter' in (body as object)), 'Serverless indexes do not support describing index stats with a filter');
  const counts = store.existing().map(({ name, indexed }) => [name, indexed().records.size] as const);
  return {
    body: {
      namespaces: Object.fromEntries(counts.map(([name, vectorCount]) => [name, { vectorCount }])),
      dimension: settings.dimension,
      indexFullness: 0,
      totalVectorCount: counts.reduce((sum, [, count]) => sum + count, 0),
      metric: settings.metric,
      vectorType: 'dense',
    },
  };
};
