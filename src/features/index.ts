import type { ServiceKey, Services } from '../core/services.ts';
import type { Metric } from '../core/telemetry.ts';
import type { Feature, Measured, Running, Verbs } from './feature.ts';
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

type SettingsOf<One> =
  One extends Feature<Verbs, infer Settings> ? (Settings extends object ? Settings : never) : never;
/** The settings of all features. */
type FeatureSettings = Union<SettingsOf<(typeof FEATURES)[number]>>;

/** Opens the services of all features. Throws if the settings of one cannot be obeyed. */
export function openServices(settings: FeatureSettings, running: Omit<Running, 'feed'>): Services {
  const opened = new Map<ServiceKey<unknown>, unknown>();
  for (const { service } of FEATURES as readonly Feature<Verbs, FeatureSettings>[]) {
    const one = service?.open(settings, running);
    if (service && one !== undefined) opened.set(service.key, one);
  }
  return opened;
}

/** Begins the background work of all features whose services are open, and adds each at once: if a later one fails, it is closed. */
export function startFeatures(
  services: Services,
  running: Running,
  add: (name: string, close: () => Promise<void>) => void,
): void {
  for (const { service } of FEATURES as readonly Feature[]) {
    const one = service && services.get(service.key);
    if (service?.start && one !== undefined) add(service.key.name, service.start(one, running).close);
  }
}

/** The metrics of all features. */
export const metricsOf = (services: Services, measured: Measured): Metric[] =>
  FEATURES.flatMap((one: Feature) => one.metrics?.(measured, one.service && services.get(one.service.key)) ?? []);
