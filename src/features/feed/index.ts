import { scraped } from '../../core/cached-answer.ts';
import { feature } from '../feature.ts';
import { changes } from './verb.ts';

export const feed = feature({
  verbs: { changes },
  metrics({ store, feed }) {
    const held = scraped(() => store.changesHeld);
    return [
      ...(store.changesHeld
        ? [
            {
              kind: 'gauge',
              name: 'omp_changes_held_seconds',
              help: 'Age of the oldest open transaction that holds the feed of changes back; 0: none does.',
              labels: ['provider'],
              async read() {
                const value = await held();
                return value === undefined ? [] : [{ value, labels: { provider: store.name } }];
              },
            } as const,
          ]
        : []),
      {
        kind: 'gauge',
        name: 'omp_changes_followers',
        help: 'Requests that wait for changes.',
        read: () => [{ value: feed.followers() }],
      },
    ];
  },
});
