import { feature } from '../feature.ts';
import { retention as verb } from './verb.ts';

export const retention = feature({ verbs: { retention: verb } });
