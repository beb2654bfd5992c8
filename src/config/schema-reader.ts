import { z } from 'zod';
import { type SettingFacts, settingFacts } from './facts.ts';
import { GROUPS, type Group } from './settings.ts';

/** The ten settings that most installations need to look at. */
const ESSENTIAL = new Set([
  'provider',
  'host',
  'port',
  'data_dir',
  'auth.mode',
  'embedding.kind',
  'embedding.api_key',
  'postgres.url',
  'mapping.preset',
  'pinecone.index_host',
]);

/** One leaf of the schema. */
export interface Setting extends SettingFacts {
  readonly group: Group;
  readonly essential: boolean;
  /** Path in the YAML file, such as `search.keyword_weight`. */
  readonly key: string;
  /** `list`: of texts. `json`: a list of objects, or one. */
  readonly type: 'string' | 'number' | 'boolean' | 'list' | 'json';
  /** Undefined: none, or an empty list. */
  readonly default: string | number | boolean | readonly string[] | undefined;
  /** Completes "must be …". */
  readonly allowed: string;
  readonly secret: boolean;
  readonly schema: z.ZodType;
}

interface JsonShape {
  readonly type: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonShape;
}

interface Leaf {
  readonly group: Group;
  readonly key: string;
  readonly schema: z.ZodType;
  readonly facts: SettingFacts;
}

function toSetting({ group, key, schema, facts }: Leaf): Setting {
  const shape = z.toJSONSchema(schema) as JsonShape;
  const value = schema.parse(undefined) as Setting['default'];
  const allowed = facts.allowed ?? allowedBy(shape);
  return {
    ...facts,
    group,
    key,
    essential: ESSENTIAL.has(key),
    type: typeOf(shape),
    default: Array.isArray(value) && value.length === 0 ? undefined : value,
    allowed: shape.items ? `a list of ${allowed}` : allowed,
    secret: facts.secret ?? false,
    schema,
  };
}

function typeOf({ type, items }: JsonShape): Setting['type'] {
  if (items) return items.type === 'object' ? 'json' : 'list';
  if (type === 'object') return 'json';
  return type === 'integer' ? 'number' : (type as Setting['type']);
}

/** Not worth a sentence in a description. */
const ANY_TEXT = 'a text that is not empty';

function allowedBy({ type, enum: values, minimum, maximum }: JsonShape): string {
  if (values !== undefined) return `one of ${values.join(', ')}`;
  if (type === 'string') return ANY_TEXT;
  if (type === 'boolean') return 'true or false';
  return `${type === 'integer' ? 'an integer' : 'a number'} from ${minimum} to ${maximum}`;
}

type Shape = Readonly<Record<string, z.ZodType>>;

const leavesOf = (group: Group, shape: Shape, prefix = ''): Setting[] =>
  Object.entries(shape).flatMap(([name, schema]) => {
    const facts = settingFacts.get(schema);
    if (facts !== undefined) return [toSetting({ group, key: prefix + name, schema, facts })];
    const section = (schema as z.ZodPrefault<z.ZodObject<Record<string, z.ZodType>>>).unwrap();
    return leavesOf(group, section.shape, `${prefix}${name}.`);
  });

/** Every setting, group by group. */
export const SETTINGS: readonly Setting[] = Object.entries(GROUPS).flatMap(([group, shape]) =>
  leavesOf(group as Group, shape),
);

const BY_KEY: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((setting) => [setting.key, setting]));
export const settingFor = (key: string): Setting | undefined => BY_KEY.get(key);

/** The sections of the YAML file. */
export const SECTIONS: ReadonlySet<string> = new Set(
  SETTINGS.flatMap(({ key }) => (key.includes('.') ? [key.slice(0, key.indexOf('.'))] : [])),
);

/** The configuration file cannot set its own path. */
export const CONFIG_FILE = {
  env: 'OMP_CONFIG',
  flag: 'config',
  description: 'YAML file to read settings from',
} as const;

/** Description, allowed values and conditions, as sentences. */
export function explain({ description, allowed, only, unless, except, secret, env }: Setting): string {
  const sentences = [description];
  if (allowed !== ANY_TEXT) sentences.push(`${allowed.charAt(0).toUpperCase()}${allowed.slice(1)}`);
  const conditions = [
    ...(only ? [condition(only)] : []),
    ...(unless ? [`${unless} is not set`] : []),
    ...(except ? [exception(except)] : []),
  ];
  if (conditions.length > 0) sentences.push(`Only while ${conditions.join(' and ')}`);
  if (secret) sentences.push(`Secret; ${env}_FILE may name a file that holds it`);
  return `${sentences.join('. ')}.`;
}

function condition([key, ...values]: NonNullable<Setting['only']>): string {
  return `${key} is ${values.length === 0 ? 'set' : values.join(' or ')}`;
}

const exception = ([key, ...values]: NonNullable<Setting['except']>): string => `${key} is not ${values.join(', ')}`;

/** The default as it would be written in the environment. */
export const defaultText = ({ default: value }: Setting): string | undefined =>
  value === undefined ? undefined : String(value);

/** Converts a text from the environment, the command line or a reference to the type of its setting. The schema checks the result. */
export function coerce(type: Setting['type'], text: string): unknown {
  if (type === 'number' && text.trim() !== '' && Number.isFinite(Number(text))) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  if (type === 'list') return text.split(',').flatMap((item) => item.trim() || []);
  if (type === 'json') return parsed(text);
  return text;
}

/** Text that is not JSON stays text: no schema of such a setting accepts it, and no message quotes it. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
