import { readFileSync } from 'node:fs';
import { check } from './check.ts';
import { dropIdle, mayBeIdle, obstacle, unmet } from './conditions.ts';
import { fromFile } from './config-file.ts';
import { fromEnvironment, secretFromEnvironment, unknownVariables } from './environment.ts';
import { ConfigError, type Environment, type Input, type Reading } from './mistakes.ts';
import { readStores, storesBeside } from './mounted-stores.ts';
import { CONFIG_FILE, coerce, SETTINGS } from './schema-reader.ts';
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
  const stores = readStores(inputs, reading);
  const unknown = unknownVariables(env, reading.referenced);
  const { mistakes } = reading;
  mistakes.push(...unmet(inputs), ...unknown.mistakes);
  const root = check(configSchema, inputs, mistakes);
  const mounted = storesBeside(root, stores, mistakes);
  if (root === undefined || mistakes.length > 0) throw new ConfigError(mistakes);
  return { config: { ...root, stores: mounted }, warnings: unknown.warnings };
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
