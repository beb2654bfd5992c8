import type { Embedder, Log } from '#contract';
import type { ChangeFeed } from '../core/change-feed.ts';
import type { ServiceKey } from '../core/services.ts';
import type { Store } from '../core/store.ts';
import type { Metric } from '../core/telemetry.ts';
import type { UserLimitRules } from '../core/user-limits.ts';
import type { Verb } from '../verbs/verb.ts';

export type Verbs = Readonly<Record<string, Verb>>;

/** What a gateway has that serves. */
export interface Running {
  readonly store: Store;
  readonly feed: Pick<ChangeFeed, 'follow' | 'followers'>;
  readonly log: Log;
}

/** The same, with what metrics are about. */
export interface Measured extends Running {
  /** Of the root store. */
  readonly embedder: Embedder | undefined;
  /** Undefined: users have no limits. */
  readonly userLimits: UserLimitRules | undefined;
}

/** A feature beside the verbs of the specification, as one folder: `src/features/index.ts` lists them. */
export interface Feature<Own extends Verbs = Verbs, Settings = never, Service = unknown> {
  /** By their names in the table of verbs. A path with `{id}` comes after those that it would match too. */
  readonly verbs: Own;
  /** Undefined: the store alone has all that its verbs need. */
  readonly service?: FeatureService<Settings, Service>;
  /** What it shows of a gateway that serves; none if the store lacks it. */
  metrics?(measured: Measured, service: Service | undefined): readonly Metric[];
}

/** What the verbs of a feature, its metrics and its background work share. */
interface FeatureService<Settings, Service> {
  /** Verbs get the service by it (`Access.service`). */
  readonly key: ServiceKey<Service>;
  /** Undefined: the settings do not ask for it, or the store cannot; the log says why. Throws if the settings cannot be obeyed. */
  readonly open: (settings: Settings, running: Omit<Running, 'feed'>) => Service | undefined;
  /** What of the store counts as absent while the service is not open. */
  readonly hides?: keyof Store;
  /** Begins its background work. */
  start?(service: Service, running: Running): { close(): Promise<void> };
}

export const feature = <Own extends Verbs, Settings = unknown, Service = unknown>(
  definition: Feature<Own, Settings, Service>,
): Feature<Own, Settings, Service> => definition;
