import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import { ROOT } from '../docs/markdown.ts';
import { temporaryFolder } from '../process/gateway.ts';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | string[];
  readonly enum?: unknown[];
  readonly const?: unknown;
  readonly anyOf?: Schema[];
  readonly items?: Schema;
  readonly properties?: Record<string, Schema>;
  readonly required?: string[];
  readonly patternProperties?: Record<string, Schema>;
}
interface Content {
  readonly content?: { readonly 'application/json'?: { readonly schema: Schema } };
}
interface Operation {
  readonly operationId: string;
  readonly parameters?: { readonly in: string; readonly name: string; readonly required?: boolean; schema: Schema }[];
  readonly requestBody?: Content;
  readonly responses: Record<string, Content>;
}

/** The client's types of what an operation is given, and of what it answers. */
const TYPES: Readonly<Record<string, readonly [request: string, response: string]>> = {
  addMemory: ['NewMemory', 'AddedMemory'],
  addMemories: ['{ memories: NewMemory[] }', '{ results: BatchResult[] }'],
  listMemories: ['ListQuery', 'Page<Memory> & LeftOut'],
  searchMemories: ['SearchQuery', 'SearchResults'],
  getMemory: ['undefined', 'Memory'],
  updateMemory: ['MemoryPatch', 'Memory'],
  deleteMemory: ['undefined', 'undefined'],
  buildContext: ['ContextQuery', 'ContextBlock'],
  readAudit: ['AuditQuery', 'AuditPage'],
  readChanges: ['ChangesQuery', 'ChangePage'],
  listUsers: ['UsersQuery', 'Page<User> & LeftOut'],
  eraseUser: ['undefined', 'Erased'],
  rollBack: ['RollbackQuery', 'RollbackPage'],
  // A file is no JSON.
  getPersonFile: ['undefined', 'undefined'],
  applyRetention: ['RetentionQuery', 'RetentionPage'],
  exportMemories: ['ExportQuery', 'ExportPage'],
  importMemories: [
    "{ memories: NewExportedMemory[]; on_conflict?: 'skip' | 'replace' }",
    '{ results: ImportResult[] }',
  ],
  getStats: ['{ user_id: string }', 'Stats'],
  listKeys: ['KeysQuery', 'Page<Key>'],
  createKey: ['NewKey', 'CreatedKey'],
  revokeKey: ['undefined', 'Key'],
  getEmbeddingUsage: ['EmbeddingUsageQuery', 'EmbeddingUsage'],
  listWebhooks: ['undefined', '{ items: Webhook[] }'],
  createWebhook: ['NewWebhook', 'WebhookWithSecret'],
  deleteWebhook: ['undefined', 'undefined'],
  testWebhook: ['undefined', 'Delivery'],
  resumeWebhook: ["{ from?: 'cursor' | 'now' }", 'Webhook'],
  rotateWebhook: ['undefined', 'WebhookWithSecret'],
  listVersions: ['VersionsQuery', 'Page<MemoryVersion> & LeftOut'],
  getVersion: ['undefined', 'MemoryVersion'],
  restoreVersion: ['{ version: number }', 'Memory'],
  purgeVersions: ['undefined', '{ purged: number }'],
  getFreeze: ['undefined', 'FreezeState'],
  freezeStore: ['undefined', 'Freeze'],
  unfreezeStore: ['undefined', 'Freeze'],
  getCapabilities: ['undefined', 'Capabilities'],
  getHealth: ['undefined', 'Health'],
};
/** Operations of orchestrators and of the documentation. */
const OTHERS = ['getLiveness', 'getReadiness', 'getDescription', 'getDocs'];

/** The type that a schema describes, in TypeScript. */
function typeOf(schema: Schema): string {
  const { $ref, anyOf, items, properties, required = [], patternProperties } = schema;
  if ($ref !== undefined) return $ref.slice('#/components/schemas/'.length);
  if (anyOf) return anyOf.map(typeOf).join(' | ');
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const one = (type: string): string => {
    if (type === 'array') return `(${typeOf(items ?? {})})[]`;
    if (!properties || type !== 'object') return type === 'integer' ? 'number' : type;
    const fields = Object.entries(properties).map(
      ([name, field]) => `${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(field)};`,
    );
    return `{ ${fields.join(' ')} ${patternProperties ? '[key: `x-$' + '{string}`]: unknown;' : ''} }`;
  };
  return schema.type === undefined ? 'unknown' : [schema.type].flat().map(one).join(' | ');
}

it('the types of the client are those of /openapi.json', async () => {
  const { paths, components } = JSON.parse(JSON.stringify(openApiDocument())) as {
    paths: Record<string, Record<string, Operation>>;
    components: { schemas: Record<string, Schema> };
  };
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  expect(operations.map(({ operationId }) => operationId).sort()).toEqual([...Object.keys(TYPES), ...OTHERS].sort());

  const named = [
    ...Object.entries(components.schemas),
    ...operations.flatMap(({ operationId, ...operation }) => [
      [`${operationId}_request`, requestOf(operation)] as const,
      [`${operationId}_response`, responseOf(operation)] as const,
    ]),
  ];
  const checks = Object.entries(TYPES).flatMap(([name, types]) =>
    types.map(
      (type, n) => `const ${name}_${n}: Fits<server.${name}_${n === 0 ? 'request' : 'response'}, ${type}> = true;`,
    ),
  );
  const imported = new Set(Object.values(TYPES).flatMap((types) => types.join().match(/[A-Z]\w+/g) ?? []));
  const file = join(temporaryFolder(), 'types.ts');
  writeFileSync(
    file,
    [
      `import type { ${[...imported]} } from '${join(ROOT, 'clients/typescript/src/types.ts')}';`,
      FITS,
      'namespace server {',
      ...named.map(([name, schema]) => `export type ${name} = ${schema ? typeOf(schema) : 'undefined'};`),
      '}',
      ...checks,
    ].join('\n'),
  );
  const options = ['--noEmit', '--pretty', '--strict', '--ignoreConfig', '--allowImportingTsExtensions', '--types', ''];
  const tsc = promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), [...options, file]);
  // It writes what is wrong to its output.
  expect(
    await tsc.then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    ),
  ).toBe('');
});

/** What the server accepts or answers is of the client's type, and has the same fields; the client may demand less. */
const FITS = `
type Fields<T> = T extends (infer Item)[] ? Fields<Item>
  : T extends object ? { [Key in keyof T as [NonNullable<T[Key]>] extends [never] ? never : Key]-?: Fields<NonNullable<T[Key]>> }
  : T extends undefined ? undefined : string;
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Fits<Server, Client> = [Server] extends [Client]
  ? Equal<Fields<Server>, Fields<Client>> extends true ? true : 'other fields'
  : 'other types';
`;

function requestOf({ parameters = [], requestBody }: Omit<Operation, 'operationId'>): Schema | undefined {
  const query = parameters.filter((parameter) => parameter.in === 'query');
  if (requestBody || query.length === 0) return bodyOf(requestBody);
  const properties = Object.fromEntries(query.map(({ name, schema }) => [name, schema]));
  return { type: 'object', properties, required: query.flatMap(({ name, required }) => (required ? [name] : [])) };
}

const responseOf = ({ responses }: Omit<Operation, 'operationId'>): Schema | undefined =>
  bodyOf(Object.entries(responses).find(([status]) => status < '300')?.[1]);

const bodyOf = (content: Content | undefined) => content?.content?.['application/json']?.schema;
