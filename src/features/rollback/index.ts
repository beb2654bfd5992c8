import { feature } from '../feature.ts';
import { rollback as verb } from './verb.ts';

export const rollback = feature({ verbs: { rollback: verb } });
