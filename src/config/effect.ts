import type { Given } from './given.ts';
import { type Setting, settingFor } from './settings.ts';

/** The value a choice such as `provider` will have; undefined while a mistake hides it. */
export function choiceOf(key: string, given: ReadonlyMap<string, Given>): unknown {
  const each = given.get(key);
  if (each !== undefined && each.value === undefined) return;
  return settingFor(key)?.schema.safeParse(each?.value).data;
}

/** Why a setting would have no effect, such as "provider is memory"; undefined while it has one or nobody can tell. */
export function obstacle({ only }: Setting, given: ReadonlyMap<string, Given>): string | undefined {
  if (only === undefined) return;
  const [key, ...values] = only;
  const above = settingFor(key);
  const higher = above && obstacle(above, given);
  if (higher !== undefined) return higher;
  // Given but unknown counts as set.
  if (values.length === 0) return given.has(key) ? undefined : `${key} is not set`;
  const choice = choiceOf(key, given);
  return choice === undefined || values.some((value) => value === choice) ? undefined : `${key} is ${choice}`;
}

/**
 * The rule for settings without effect: they are mistakes, since whoever wrote one expects something of it. Two
 * kinds of environment variables are left alone instead: those of a provider that is not chosen, so that
 * OMP_PROVIDER alone switches a deployment, and names that are not ours (OPENAI_API_KEY), which may serve others.
 */
export const mayBeIdle = ({ env, only }: Setting, origin: Given['origin']): boolean =>
  origin === 'environment' && (only?.[0] === 'provider' || !env.startsWith('OMP_'));
