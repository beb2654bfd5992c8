import type { ParseArgsConfig } from 'node:util';
import { CONFIG_FILE } from '../config/settings.ts';

/** Flags of every command that reads the configuration, by name without dashes, as `loadConfig` takes them. */
const CONFIG_FLAGS = [CONFIG_FILE.flag, 'provider', 'data-dir'] as const;

export type Flags = Readonly<Record<string, string>>;

/** What such a command understands besides its own options. */
export const COMMON_OPTIONS = {
  ...Object.fromEntries(CONFIG_FLAGS.map((flag) => [flag, { type: 'string' as const }])),
  help: { type: 'boolean', short: 'h' },
} satisfies ParseArgsConfig['options'];

/** The flags among what was parsed. */
export const flagsIn = (values: Readonly<Record<string, unknown>>): Flags =>
  Object.fromEntries(
    CONFIG_FLAGS.flatMap((flag) => (typeof values[flag] === 'string' ? [[flag, values[flag]] as const] : [])),
  );
