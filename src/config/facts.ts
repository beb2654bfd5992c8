import { z } from 'zod';

/** What the schema cannot say about a setting. Help, the tables, the example file and all messages are made from it. */
export interface SettingFacts {
  readonly env: string;
  /** One sentence without its full stop, with units. Ranges and lists come from the schema. */
  readonly description: string;
  readonly flag?: string;
  /** Never printed; may also be given as a file named by `<env>_FILE`. */
  readonly secret?: boolean;
  /** The form of a text, or of each item of a list; completes "must be …" or "a list of …". */
  readonly allowed?: string;
  /** A value to show if there is no default. */
  readonly example?: unknown;
  /** Has an effect only while the setting `key` is one of `values`; without values, while it is set. */
  readonly only?: readonly [key: string, ...values: string[]];
  /** Has no effect while this setting is set. */
  readonly unless?: string;
  /** Has no effect while the setting `key` is one of `values`. */
  readonly except?: readonly [key: string, ...values: string[]];
}

export const settingFacts = z.registry<SettingFacts>();

export const milliseconds = z.int().min(1).max(3_600_000);
export const text = z.string().min(1);
export const httpUrl = z.url({ protocol: /^https?$/ });
