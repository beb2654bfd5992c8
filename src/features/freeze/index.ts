import { scraped } from '../../core/cached-answer.ts';
import { feature } from '../feature.ts';
import { freeze as freezeStore, getFreeze, unfreeze } from './verbs.ts';

export const freeze = feature({
  verbs: { get_freeze: getFreeze, freeze: freezeStore, unfreeze },
  metrics({ store }) {
    const current = scraped(() => store.freezing?.current);
    const read = async () => {
      const freeze = await current();
      return [{ value: freeze ? Math.max(0, (Date.now() - Date.parse(freeze.since)) / 1_000) : 0 }];
    };
    const help = 'Seconds since the store was frozen, so that it takes no changes; 0: it is not frozen.';
    return store.freezing ? [{ kind: 'gauge', name: 'omp_store_frozen_seconds', help, read }] : [];
  },
});
