import type { ParseArgsConfig } from 'node:util';
import { loadConfig } from '../config/load.ts';
import { CONFIG_FILE } from '../config/schema-reader.ts';
import type { Config } from '../config/settings.ts';
import { report, type Terminal } from './terminal.ts';

/** Flags that set configuration, by name without dashes, as `loadConfig` takes them. */
export type Flags = Readonly<Record<string, string>>;

export type Options = NonNullable<ParseArgsConfig['options']>;
export const textOptions = (flags: readonly string[]): Options =>
  Object.fromEntries(flags.map((flag) => [flag, { type: 'string' }]));

/** Flags of every command that reads the configuration. */
const CONFIG_FLAGS = [CONFIG_FILE.flag, 'provider', 'data-dir'] as const;

/** Options of every command, in addition to its own. */
export const COMMON_OPTIONS = {
  ...textOptions(CONFIG_FLAGS),
  help: { type: 'boolean', short: 'h' },
} satisfies Options;

/** The usage of those options. */
export const COMMON_USAGE = `  --config FILE       As for the gateway; the environment counts too
  --provider NAME
  --data-dir FOLDER
  -h, --help          Print this and exit`;

/** Of commands for one store. */
export const STORE_OPTION = { store: { type: 'string' } } satisfies Options;

/** The usage of that option. */
export const STORE_USAGE = `  --store NAME        A mounted store of the configuration (default: root)`;

export const configFlags = (values: Readonly<Record<string, unknown>>): Flags =>
  Object.fromEntries(
    CONFIG_FLAGS.flatMap((flag) => (typeof values[flag] === 'string' ? [[flag, values[flag]] as const] : [])),
  );

/** The configuration; its warnings are reported. Throws `ConfigError`. */
export function configOf(flags: Flags, terminal: Terminal): Config {
  const { config, warnings } = loadConfig({ flags, env: terminal.env });
  for (const warning of warnings) report(terminal, warning);
  return config;
}
