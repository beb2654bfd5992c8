import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { mayBeIdle, obstacle, unmet } from './conditions.ts';
import { fromFile } from './config-file.ts';
import { fromEnvironment, secretFromEnvironment, unknownVariables } from './environment.ts';
import { ConfigError, type Environment, faultMessage, type Given, type Reading } from './mistakes.ts';
import { CONFIG_FILE, coerce, SETTINGS, settingFor } from './schema-reader.ts';
import { type Config, configSchema } from './settings.ts';

export interface Sources {
  /** Command-line flags by name without dashes, `config` among them. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly env: Environment;
  /** Text of the configuration file and of secret files; throws as `fs` does. */
  readonly readFile?: (path: string) => string;
}

/**
 * The configuration: command line over environment over file over default. Only the value in effect is checked.
 * `warnings` are for the log. Throws `ConfigError` with every mistake at once.
 */
export function loadConfig(sources: Sources): { config: Config; warnings: string[] } {
  const { flags = {}, env, readFile = (path) => readFileSync(path, 'utf8') } = sources;
  const reading: Reading = { env, readFile, mistakes: [], referenced: new Set() };
  const path = flags[CONFIG_FILE.flag] ?? (env[CONFIG_FILE.env] || undefined);
  const file = path === undefined ? new Map<string, Given>() : fromFile(path, reading);
  const given = new Map([...file, ...fromEnvironment(env), ...fromFlags(flags)]);
  dropIdle(given, reading.mistakes);
  addSecrets(given, reading);
  const unknown = unknownVariables(env, reading.referenced);
  reading.mistakes.push(...unmet(given), ...unknown.mistakes);
  return { config: check(given, reading.mistakes), warnings: unknown.warnings };
}

function fromFlags(flags: Readonly<Record<string, string>>): Map<string, Given> {
  const given = new Map<string, Given>();
  for (const { key, flag, type } of SETTINGS) {
    const written = flag && flags[flag];
    if (written === undefined) continue;
    given.set(key, { value: coerce(type, written), name: `--${flag}`, written, origin: 'command line' });
  }
  return given;
}

/** Removes settings without effect, and reports those that are mistakes. */
function dropIdle(given: Map<string, Given>, mistakes: string[]): void {
  for (const setting of SETTINGS) {
    const each = given.get(setting.key);
    const prevented = obstacle(setting, given);
    if (each === undefined || prevented === undefined) continue;
    given.delete(setting.key);
    if (each.value !== undefined && !mayBeIdle(setting, each.origin, prevented)) {
      mistakes.push(`${each.name} has no effect while ${prevented.reason}`);
    }
  }
}

function addSecrets(given: Map<string, Given>, reading: Reading): void {
  for (const setting of SETTINGS) {
    if (!setting.secret) continue;
    const prevented = obstacle(setting, given);
    if (prevented === undefined) {
      const secret = secretFromEnvironment(setting, reading);
      if (secret !== undefined) given.set(setting.key, secret);
      continue;
    }
    const idle = [setting.env, `${setting.env}_FILE`].find((name) => reading.env[name]);
    if (idle !== undefined && !mayBeIdle(setting, 'environment', prevented)) {
      reading.mistakes.push(`${idle} has no effect while ${prevented.reason}`);
    }
  }
}

function check(given: ReadonlyMap<string, Given>, mistakes: readonly string[]): Config {
  const { data, error } = configSchema.safeParse(nest(given));
  const faults = new Set(error?.issues.map((issue) => messageOf(issue, given)));
  if (data === undefined || mistakes.length > 0) throw new ConfigError([...mistakes, ...faults]);
  return data;
}

function messageOf(issue: z.core.$ZodIssue, given: ReadonlyMap<string, Given>): string {
  const [first, second, ...rest] = issue.path;
  const section = settingFor(String(first)) === undefined;
  const key = section ? `${String(first)}.${String(second)}` : String(first);
  const setting = settingFor(key);
  const each = given.get(key);
  if (!setting || !each) return `${key} is not valid`;
  // The text of this kind quotes what was written, which may be a key in the wrong place.
  const message = issue.code === 'unrecognized_keys' ? 'has an unknown field' : issue.message;
  return faultMessage(setting, each, { path: section ? rest : issue.path.slice(1), message });
}

function nest(given: ReadonlyMap<string, Given>): Record<string, unknown> {
  const tree: Record<string, unknown> = {};
  for (const [key, { value }] of given) {
    const [first = '', second] = key.split('.');
    tree[first] = second === undefined ? value : { ...(tree[first] as object | undefined), [second]: value };
  }
  return tree;
}
