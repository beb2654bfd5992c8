import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { mayBeIdle, obstacle, unmet } from './conditions.ts';
import { fromFile } from './config-file.ts';
import { fromEnvironment, secretFromEnvironment, unknownVariables } from './environment.ts';
import { ConfigError, type Environment, faultMessage, type Input, type Reading } from './mistakes.ts';
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
  const file = path === undefined ? new Map<string, Input>() : fromFile(path, reading);
  const inputs = new Map([...file, ...fromEnvironment(env), ...fromFlags(flags)]);
  dropIdle(inputs, reading.mistakes);
  addSecrets(inputs, reading);
  const unknown = unknownVariables(env, reading.referenced);
  reading.mistakes.push(...unmet(inputs), ...unknown.mistakes);
  return { config: check(inputs, reading.mistakes), warnings: unknown.warnings };
}

function fromFlags(flags: Readonly<Record<string, string>>): Map<string, Input> {
  const inputs = new Map<string, Input>();
  for (const { key, flag, type } of SETTINGS) {
    const written = flag && flags[flag];
    if (written === undefined) continue;
    inputs.set(key, { value: coerce(type, written), name: `--${flag}`, written, origin: 'command line' });
  }
  return inputs;
}

/** Removes settings without effect, and reports those that are mistakes. */
function dropIdle(inputs: Map<string, Input>, mistakes: string[]): void {
  for (const setting of SETTINGS) {
    const each = inputs.get(setting.key);
    const prevented = obstacle(setting, inputs);
    if (each === undefined || prevented === undefined) continue;
    inputs.delete(setting.key);
    if (each.value !== undefined && !mayBeIdle(setting, each.origin, prevented)) {
      mistakes.push(`${each.name} has no effect while ${prevented.reason}`);
    }
  }
}

function addSecrets(inputs: Map<string, Input>, reading: Reading): void {
  for (const setting of SETTINGS) {
    if (!setting.secret) continue;
    const prevented = obstacle(setting, inputs);
    if (prevented === undefined) {
      const secret = secretFromEnvironment(setting, reading);
      if (secret !== undefined) inputs.set(setting.key, secret);
      continue;
    }
    const idle = [setting.env, `${setting.env}_FILE`].find((name) => reading.env[name]);
    if (idle !== undefined && !mayBeIdle(setting, 'environment', prevented)) {
      reading.mistakes.push(`${idle} has no effect while ${prevented.reason}`);
    }
  }
}

function check(inputs: ReadonlyMap<string, Input>, mistakes: readonly string[]): Config {
  const { data, error } = configSchema.safeParse(nest(inputs));
  const faults = new Set(error?.issues.map((issue) => messageOf(issue, inputs)));
  if (data === undefined || mistakes.length > 0) throw new ConfigError([...mistakes, ...faults]);
  return data;
}

function messageOf(issue: z.core.$ZodIssue, inputs: ReadonlyMap<string, Input>): string {
  const [first, second, ...rest] = issue.path;
  const section = settingFor(String(first)) === undefined;
  const key = section ? `${String(first)}.${String(second)}` : String(first);
  const setting = settingFor(key);
  const each = inputs.get(key);
  if (!setting || !each) return `${key} is not valid`;
  // The text of this kind quotes what was written, which may be a key in the wrong place.
  const message = issue.code === 'unrecognized_keys' ? 'has an unknown field' : issue.message;
  return faultMessage(setting, each, { path: section ? rest : issue.path.slice(1), message });
}

function nest(inputs: ReadonlyMap<string, Input>): Record<string, unknown> {
  const tree: Record<string, unknown> = {};
  for (const [key, { value }] of inputs) {
    const [first = '', second] = key.split('.');
    tree[first] = second === undefined ? value : { ...(tree[first] as object | undefined), [second]: value };
  }
  return tree;
}
