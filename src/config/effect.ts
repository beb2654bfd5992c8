import type { Given } from './given.ts';
import { type Setting, settingFor } from './settings.ts';

/** The value a choice such as `provider` will have; undefined while a mistake hides it. */
export function choiceOf(key: string, given: ReadonlyMap<string, Given>): unknown {
  const each = given.get(key);
  if (each !== undefined && each.value === undefined) return;
  return settingFor(key)?.schema.safeParse(each?.value).data;
}

/** Why a setting would have no effect. */
export interface Obstacle {
  /** The setting that is in its way. */
  readonly key: string;
  /** Completes "has no effect while …". */
  readonly reason: string;
}

/** Undefined while the setting has an effect, or nobody can tell. */
export function obstacle({ only, unless }: Setting, given: ReadonlyMap<string, Given>): Obstacle | undefined {
  return (only && missing(only, given)) ?? (unless === undefined ? undefined : excluded(unless, given));
}

function missing([key, ...values]: NonNullable<Setting['only']>, given: ReadonlyMap<string, Given>) {
  const above = settingFor(key);
  const higher = above && obstacle(above, given);
  if (higher !== undefined) return higher;
  // Given but unknown counts as set.
  if (values.length === 0) return given.has(key) ? undefined : { key, reason: `${key} is not set` };
  const choice = choiceOf(key, given);
  return choice === undefined || values.some((value) => value === choice)
    ? undefined
    : { key, reason: `${key} is ${choice}` };
}

function excluded(key: string, given: ReadonlyMap<string, Given>) {
  const choice = choiceOf(key, given);
  return choice === undefined ? undefined : { key, reason: `${key} is ${choice}` };
}

/**
 * The rule for settings without effect: they are mistakes, since whoever wrote one expects something of it. Two
 * kinds of environment variables are left alone instead: those of a provider that is not chosen, so that
 * OMP_PROVIDER alone switches a deployment, and names that are not ours (OPENAI_API_KEY), which may serve others.
 */
export const mayBeIdle = ({ env }: Setting, origin: Given['origin'], { key }: Obstacle): boolean =>
  origin === 'environment' && (key === 'provider' || !env.startsWith('OMP_'));
