import { feature } from '../feature.ts';
import { erase, stats, users } from './verbs.ts';

export const people = feature({ verbs: { users, erase, stats } });
