import { feed } from './feed/index.ts';
import { freeze } from './freeze/index.ts';
import { history } from './history/index.ts';
import { keys } from './keys/index.ts';
import { people } from './people/index.ts';
import { retention } from './retention/index.ts';
import { rollback } from './rollback/index.ts';
import { transfer } from './transfer/index.ts';
import { usage } from './usage/index.ts';
import { webhooks } from './webhooks/index.ts';

/** Every feature: the table of verbs, capabilities, metrics and background work are made of them, in this order. */
export const FEATURES = [history, feed, people, rollback, retention, transfer, keys, usage, webhooks, freeze] as const;

type Union<All> = (All extends unknown ? (one: All) => void : never) extends (all: infer Whole) => void ? Whole : never;

/** The verbs of all features. */
export const FEATURE_VERBS = Object.assign({}, ...FEATURES.map(({ verbs }) => verbs)) as Union<
  (typeof FEATURES)[number]['verbs']
>;
