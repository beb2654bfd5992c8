import { feature } from '../feature.ts';
import { embeddingUsage } from './verb.ts';

export const usage = feature({ verbs: { embedding_usage: embeddingUsage } });
