import { feature } from '../feature.ts';
import { freeze as freezeStore, getFreeze, unfreeze } from './verbs.ts';

export const freeze = feature({ verbs: { get_freeze: getFreeze, freeze: freezeStore, unfreeze } });
