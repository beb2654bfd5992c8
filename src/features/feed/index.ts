import { feature } from '../feature.ts';
import { changes } from './verb.ts';

export const feed = feature({ verbs: { changes } });
