import { z } from 'zod';

/** What the schema cannot say about a setting. Help, tables, the example file and every message derive from it. */
export interface SettingFacts {
  readonly env: string;
  /** One sentence without its full stop, units included; ranges and lists are taken from the schema. */
  readonly description: string;
  readonly flag?: string;
  /** Never printed; may also be given as a file named by `<env>_FILE`. */
  readonly secret?: boolean;
  /** What a text setting or each item of a list is, completing "must be …" or "a list of …". */
  readonly allowed?: string;
  /** A value to show where there is no default. */
  readonly example?: unknown;
  /** Has an effect only while the setting `key` is one of `values`; without values, while it is set. */
  readonly only?: readonly [key: string, ...values: string[]];
  /** Has no effect while this setting is set. */
  readonly unless?: string;
}

export const settingFacts = z.registry<SettingFacts>();

export const milliseconds = z.int().min(1).max(3_600_000);
export const text = z.string().min(1);
