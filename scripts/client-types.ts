import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SECTIONS } from '../src/conformance/clauses.ts';
import { openApiDocument } from '../src/http/openapi/document.ts';

/*
 * The types of the TypeScript client, made of the OpenAPI document. No library is used: openapi-typescript 7.13 makes 8,400 lines of it, names
 * no part, lets a misspelt field of a memory pass, demands fields that have a default, and needs TypeScript 5.
 */

/** As much of a schema as the types say. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly description?: string;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: object;
}
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly {
    readonly in: string;
    readonly name: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
}

/** Names that say more to a caller than those of the document. */
const RENAMED: Readonly<Record<string, string>> = {
  ContextRequest: 'ContextQuery',
  Rollback: 'RollbackQuery',
  Retention: 'RetentionQuery',
  AuditLog: 'AuditPage',
  Changes: 'ChangePage',
  UserStats: 'Stats',
};
/** What methods of the client put together or take apart, what it has classes for, and what probes read. */
const SKIPPED =
  /^(?:NewMemories|ExportedMemories|Restore|Purged|BatchResults|ImportResults|WebhookList|Error|\w*ness)$/;
/** Parts that have no name in the document: where they stand. Whatever is of the same form gets the name too. */
const PARTS: Readonly<Record<string, string>> = {
  Verb: 'Capabilities.verbs',
  Action: 'AuditLog.entries.action',
  Source: 'Memory.source',
  Origin: 'Memory.x-omp-origin',
  Explanation: 'SearchResult.explanation',
  PlaceExplanation: 'ContextBlock.citations.explanation',
  Citation: 'ContextBlock.citations',
  AuditEntry: 'AuditLog.entries',
  Change: 'Changes.changes',
  User: 'UserPage.items',
  Holdings: 'ErasureReceipt.stores.left',
  RollbackItem: 'RollbackPage.items',
  RetentionRule: 'RetentionPage.rules',
  RetentionItem: 'RetentionPage.items',
  EmbeddingUsageTotals: 'EmbeddingUsage.totals',
  EmbeddingUsageRow: 'EmbeddingUsage.items',
  Features: 'Capabilities.features',
  Limits: 'Capabilities.limits',
  ChangeAction: 'NewWebhook.actions',
};
/** Types that have all fields of another. */
const EXTENDED: Readonly<Record<string, string>> = {
  AddedMemory: 'Memory',
  ExportedMemory: 'Memory',
  NewExportedMemory: 'NewMemory',
  CreatedKey: 'Key',
  WebhookWithSecret: 'Webhook',
  FreezeState: 'Freeze',
  EmbeddingUsageRow: 'EmbeddingUsageTotals',
};
/** Whether gateways of older versions, or of others, do not answer a field that this one always does. */
const isLater = (type: string, field: string): boolean =>
  ['Erased.receipt', 'Key.untrusted'].includes(`${type}.${field}`) ||
  (/^(?:Features|Limits)$/.test(type) && !(`${type.toLowerCase()}.${field}` in (SECTIONS.Capabilities ?? {})));
/** The parameters of these operations. */
const QUERIES: Readonly<Record<string, string>> = {
  listMemories: 'ListQuery',
  searchMemories: 'SearchQuery',
  listVersions: 'VersionsQuery',
  readAudit: 'AuditQuery',
  readChanges: 'ChangesQuery',
  listUsers: 'UsersQuery',
  exportMemories: 'ExportQuery',
  listKeys: 'KeysQuery',
  getEmbeddingUsage: 'EmbeddingUsageQuery',
};

/** Where the types are. */
export const CLIENT_TYPES = 'clients/typescript/src/wire-types.ts';

const HEAD = `/* Made of the OpenAPI document by \`npm run docs\`. Change the schemas of the verbs instead. */

/** Custom keys begin with \`x-\`; the gateway stores and returns them. */
export interface Extensions {
  [key: \`x-\${string}\`]: unknown;
}

/** Stores that an answer lacks, of a gateway with several (\`x-stores\` of \`/capabilities\`). */
export interface LeftOut {
  /** They are optional, and do not answer. */
  'x-partial'?: string[];
  /** They do not support what was asked for. */
  'x-without'?: string[];
}`;
const PARTIAL = ['x-partial', 'x-without'];

/** Names of types by their text without names. */
type Names = ReadonlyMap<string, string>;

/** The text of `CLIENT_TYPES`. */
export function clientTypes(): string {
  const { paths = {}, components } = openApiDocument();
  const schemas = components?.schemas as Readonly<Record<string, Schema>>;
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods) as unknown as Operation[]);
  const wire = Object.entries(schemas).filter(([name]) => !SKIPPED.test(name));
  const all = new Map<string, Schema>([
    ...wire.map(([name, schema]) => [RENAMED[name] ?? name, schema] as const),
    ...Object.entries(PARTS).map(([name, place]) => [name, partOf(schemas, place)] as const),
    ...operations.flatMap((each) => {
      const name = QUERIES[each.operationId];
      return name === undefined ? [] : [[name, queryOf(each)] as const];
    }),
  ]);
  const names = new Map([...all].map(([name, schema]) => [textOf(schema, new Map()), name]));
  const texts = [...all].map(([name, schema]) => declaration(name, schema, all, names));
  return formatted([HEAD, ...texts].join('\n\n'));
}

function partOf(schemas: Readonly<Record<string, Schema>>, place: string): Schema {
  const [name = '', ...fields] = place.split('.');
  const within = ({ items, anyOf, properties }: Schema, field: string): Schema | undefined =>
    properties?.[field] ?? [items, ...(anyOf ?? [])].flatMap((one) => one && (within(one, field) ?? [])).find(Boolean);
  let schema = schemas[name];
  for (const field of fields) schema = schema && within(schema, field);
  if (!schema) throw new Error(`the OpenAPI document has no ${place}`);
  return withoutNull(schema.items ?? schema);
}

const withoutNull = ({ description: _, ...schema }: Schema): Schema =>
  Array.isArray(schema.type) ? { ...schema, type: schema.type.filter((one) => one !== 'null') } : schema;

function queryOf({ parameters = [] }: Operation): Schema {
  const query = parameters.filter((parameter) => parameter.in === 'query');
  return {
    type: 'object',
    properties: Object.fromEntries(
      query.map(({ name, description = '', schema }) => [name, { ...schema, description }]),
    ),
    required: query.flatMap(({ name, required }) => (required ? [name] : [])),
  };
}

/** An interface, or the type of a closed list. */
function declaration(name: string, schema: Schema, all: ReadonlyMap<string, Schema>, names: Names): string {
  const about = commentOf(schema);
  const { properties } = schema;
  if (!properties) return `${about}export type ${name} = ${textOf(schema, new Map())};`;
  const base = EXTENDED[name] ?? (schema.patternProperties && 'Extensions');
  const inherited = Object.keys(all.get(base ?? '')?.properties ?? {});
  if (inherited.some((field) => !properties[field])) throw new Error(`${name} does not have all fields of ${base}`);
  const isPartial = PARTIAL.every((field) => properties[field]);
  const bases = [base, isPartial && 'LeftOut'].filter(Boolean).join(', ');
  const own = Object.entries(properties).filter(([field]) => ![...inherited, ...PARTIAL].includes(field));
  const isQuery = name.endsWith('Query');
  const fields = own.map(([field, type]) => {
    const isGiven = schema.required?.includes(field) && !isLater(name, field);
    const text = textOf(type, names);
    // A list of one is that one. What is not given may be undefined.
    const item = isQuery && text.endsWith('[]') && !text.includes('|') ? `${text.slice(0, -2)} | ${text}` : text;
    return fieldOf(field, isGiven ? item : `${item}${isQuery ? ' | undefined' : ''}`, isGiven, commentOf(type));
  });
  return `${about}export interface ${name}${bases && ` extends ${bases}`} {\n${fields.join('\n')}\n}`;
}

const fieldOf = (name: string, text: string, isGiven: boolean | undefined, about = ''): string =>
  `${about}${/^\w+$/.test(name) ? name : `'${name}'`}${isGiven ? '' : '?'}: ${text};`;

function formOf({ properties = {}, required = [] }: Schema, names: Names): string {
  const fields = Object.entries(properties).map(([field, type]) =>
    fieldOf(field, textOf(type, names), required.includes(field), names.size > 0 ? commentOf(type) : ''),
  );
  return `{\n${fields.join('\n')}\n}`;
}

/** A type in TypeScript. `names`: of the forms that have one. */
function textOf(schema: Schema, names: Names): string {
  const { $ref, anyOf, items, properties } = schema;
  if ($ref !== undefined) return named($ref.slice('#/components/schemas/'.length));
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) {
    const closed = schema.enum
      .filter((value) => value !== null)
      .map((value) => JSON.stringify(value))
      .join(' | ');
    return orNull(schema, names.get(closed) ?? closed);
  }
  if (schema.type === undefined) return anyOf ? anyOf.map((one) => textOf(one, names)).join(' | ') : 'unknown';
  if (items) {
    const item = textOf(items, names);
    return orNull(schema, `${/[|&]/.test(item) && !item.startsWith('{') ? `(${item})` : item}[]`);
  }
  if (properties) {
    return orNull(schema, names.get(formOf(schema, new Map())) ?? formOf(schema, names));
  }
  return [schema.type]
    .flat()
    .map((type) => (type === 'integer' ? 'number' : type))
    .join(' | ');
}

const named = (name: string) => RENAMED[name] ?? name;
const orNull = ({ type }: Schema, text: string) => (type?.includes('null') ? `${text} | null` : text);

function commentOf({ description = '', default: value }: Schema): string {
  const isSaid = value === undefined || value === false || /default/i.test(description);
  const text = isSaid ? description : `${description} Default: ${value}.`;
  if (text === '') return '';
  const lines = [''];
  for (const word of text.trim().replaceAll('*/', '*\\/').split(/\s+/)) {
    if (`${lines.at(-1)} ${word}`.length > 108) lines.push('');
    lines.push(`${lines.pop()} ${word}`);
  }
  return lines.length === 1 ? `/**${lines[0]} */\n` : `/**\n${lines.map((line) => ` *${line}\n`).join('')} */\n`;
}

function formatted(text: string): string {
  const biome = fileURLToPath(new URL('../node_modules/.bin/biome', import.meta.url));
  return execFileSync(biome, ['format', `--stdin-file-path=${CLIENT_TYPES}`], {
    input: text,
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('../', import.meta.url)),
  });
}

// Before a build, which may use a type that is not there yet.
if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL(`../${CLIENT_TYPES}`, import.meta.url), clientTypes());
