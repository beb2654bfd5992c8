import { feature } from '../feature.ts';
import { erase, stats, users } from './verbs.ts';

export const people = feature({
  verbs: { users, erase, stats },
  metrics: ({ userLimits }) =>
    userLimits
      ? [
          {
            kind: 'counter',
            name: 'omp_user_limit_rejections_total',
            help: 'Changes that a limit of their user has rejected, by limit.',
            labels: ['limit'],
            read: () => Object.entries(userLimits.rejections()).map(([limit, value]) => ({ value, labels: { limit } })),
          },
        ]
      : [],
});
