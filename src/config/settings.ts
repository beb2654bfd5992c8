import { z } from 'zod';
import { type SettingFacts, settingFacts } from './facts.ts';
import { configSchema } from './schema.ts';

/** One leaf of the schema. */
export interface Setting extends SettingFacts {
  /** Path in the YAML file, such as `search.keyword_weight`. */
  readonly key: string;
  /** `list` is one of texts, `json` one of objects. */
  readonly type: 'string' | 'number' | 'boolean' | 'list' | 'json';
  /** Undefined when there is none to show, as of a list that is empty. */
  readonly default: string | number | boolean | readonly string[] | undefined;
  /** Completes "must be …". */
  readonly allowed: string;
  readonly secret: boolean;
  readonly schema: z.ZodType;
}

interface Shape {
  readonly type: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Shape;
}

function settingAt(key: string, schema: z.ZodType, facts: SettingFacts): Setting {
  const shape = z.toJSONSchema(schema) as Shape;
  const value = schema.parse(undefined) as Setting['default'];
  const allowed = facts.allowed ?? allowedBy(shape);
  return {
    ...facts,
    key,
    type: typeOf(shape),
    default: Array.isArray(value) && value.length === 0 ? undefined : value,
    allowed: shape.items ? `a list of ${allowed}` : allowed,
    secret: facts.secret ?? false,
    schema,
  };
}

function typeOf({ type, items }: Shape): Setting['type'] {
  if (items) return items.type === 'object' ? 'json' : 'list';
  return type === 'integer' ? 'number' : (type as Setting['type']);
}

/** Nothing worth saying in a description. */
const ANY_TEXT = 'a text that is not empty';

function allowedBy({ type, enum: values, minimum, maximum }: Shape): string {
  if (values !== undefined) return `one of ${values.join(', ')}`;
  if (type === 'string') return ANY_TEXT;
  if (type === 'boolean') return 'true or false';
  return `${type === 'integer' ? 'an integer' : 'a number'} from ${minimum} to ${maximum}`;
}

function walk(shape: Readonly<Record<string, z.ZodType>>, prefix = ''): Setting[] {
  return Object.entries(shape).flatMap(([name, schema]) => {
    const facts = settingFacts.get(schema);
    if (facts !== undefined) return [settingAt(prefix + name, schema, facts)];
    const section = (schema as z.ZodPrefault<z.ZodObject<Record<string, z.ZodType>>>).unwrap();
    return walk(section.shape, `${prefix}${name}.`);
  });
}

/** Every setting, in the order of the schema: top-level ones first, then section by section. */
export const SETTINGS: readonly Setting[] = walk(configSchema.shape);

const BY_KEY: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((setting) => [setting.key, setting]));
export const settingFor = (key: string): Setting | undefined => BY_KEY.get(key);

/** The sections of the YAML file. */
export const SECTIONS: ReadonlySet<string> = new Set(
  SETTINGS.flatMap(({ key }) => (key.includes('.') ? [key.slice(0, key.indexOf('.'))] : [])),
);

/** The configuration file is no setting of itself. */
export const CONFIG_FILE = {
  env: 'OMP_CONFIG',
  flag: 'config',
  description: 'YAML file to read settings from',
} as const;

/** Description, what is allowed, and when it applies, as sentences. */
export function explain({ description, allowed, only, unless, secret, env }: Setting): string {
  const sentences = [description];
  if (allowed !== ANY_TEXT) sentences.push(`${allowed.charAt(0).toUpperCase()}${allowed.slice(1)}`);
  const conditions = [...(only ? [condition(only)] : []), ...(unless ? [`${unless} is not set`] : [])];
  if (conditions.length > 0) sentences.push(`Only while ${conditions.join(' and ')}`);
  if (secret) sentences.push(`Secret; ${env}_FILE may name a file that holds it`);
  return `${sentences.join('. ')}.`;
}

function condition([key, ...values]: NonNullable<Setting['only']>): string {
  return `${key} is ${values.length === 0 ? 'set' : values.join(' or ')}`;
}

/** The default as the environment would say it. */
export const defaultText = ({ default: value }: Setting): string | undefined =>
  value === undefined ? undefined : String(value);

/** The type a text from the environment, the command line or a reference is meant to have; the schema judges the result. */
export function coerce(type: Setting['type'], text: string): unknown {
  if (type === 'number' && text.trim() !== '' && Number.isFinite(Number(text))) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  if (type === 'list') return text.split(',').flatMap((item) => item.trim() || []);
  if (type === 'json') return parsed(text);
  return text;
}

/** The text itself when it is no JSON: no schema of such a setting accepts one, and none quotes it. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
