import { readFileSync } from 'node:fs';
import {
  registerSchema,
  type SchemaFragment,
  type SchemaObject,
  setShouldValidateSchema,
  type Validator,
  validate,
} from '@hyperjump/json-schema/openapi-3-0';
import { parse } from 'yaml';
import { ENDPOINTS, type Endpoint } from './operations.ts';

/** As much of the OpenAPI file as is read here. */
interface Description {
  readonly parameters: readonly Parameter[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, object>>;
}

interface Parameter {
  readonly in: 'header' | 'query' | 'path';
  readonly name: string;
  readonly required?: boolean;
  readonly schema: { readonly type: string };
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Description>>>>;
}

interface Sent {
  readonly headers: Headers;
  readonly query: URLSearchParams;
  /** The parsed body; undefined where there is none or it is not JSON. */
  readonly body: unknown;
}

/** What the OpenAPI file has against what an endpoint is sent and what it answers; empty when nothing. */
export interface Judge {
  request(sent: Sent): string[];
  answer(status: number, body: unknown): string[];
}

const ROOT = 'https://pinecone.invalid/openapi';
const DIALECT = 'https://spec.openapis.org/oas/3.0/schema';
const API_VERSION = /^\d{4}-\d{2}$/;

/** Reads the OpenAPI file beside this one and gives the judge of each endpoint. */
export function openJudges(): Promise<Map<Endpoint, Judge>> {
  // The validator takes a document once per process.
  opened ??= readJudges();
  return opened;
}

let opened: Promise<Map<Endpoint, Judge>> | undefined;

async function readJudges(): Promise<Map<Endpoint, Judge>> {
  const text = readFileSync(new URL('openapi.yaml', import.meta.url), 'utf8');
  const document = closed(parse(text)) as Document & SchemaObject;
  // Another test of this process may have switched on formats, by which references of this file are no URIs.
  setShouldValidateSchema(false);
  try {
    registerSchema(document, ROOT, DIALECT);
    const judges = Object.values(ENDPOINTS).map(
      async (endpoint) => [endpoint, await judgeOf(document, endpoint)] as const,
    );
    return new Map(await Promise.all(judges));
  } finally {
    setShouldValidateSchema(true);
  }
}

/** OpenAPI lets unknown properties pass. Here they are misspelled ones: every object that names its properties has no others. */
const closed = (document: unknown): unknown =>
  JSON.parse(JSON.stringify(document), (_key, value) =>
    value?.type === 'object' && value.properties && !value.additionalProperties
      ? { ...value, additionalProperties: false }
      : value,
  );

async function judgeOf({ paths }: Document, { path, method }: Endpoint): Promise<Judge> {
  const operation = paths[path]?.[method.toLowerCase()];
  if (!operation) throw new Error(`${method} ${path} is not in the OpenAPI file`);
  const at = (...parts: readonly (string | number)[]) => compile(['paths', path, method.toLowerCase(), ...parts]);
  const content = ['content', 'application/json', 'schema'];
  const body = operation.requestBody ? await at('requestBody', ...content) : undefined;
  const parameters = await Promise.all(
    operation.parameters.map(async (parameter, i) => ({
      ...parameter,
      validator: await at('parameters', i, 'schema'),
    })),
  );
  const answers = new Map<string, Validator>();
  for (const status of Object.keys(operation.responses)) {
    answers.set(status, await at('responses', status, ...content));
  }
  return {
    request: (sent) => [
      ...headerMistakes(sent),
      ...parametersMistakes(parameters, sent),
      ...(body ? bodyMistakes(body, sent) : []),
    ],
    answer: (status, given) => {
      const validator = answers.get(`${status}`) ?? answers.get(`${Math.floor(status / 100)}XX`);
      return validator ? mistakes(validator, given, `answer ${status}`) : [`answer ${status}: not in the file`];
    },
  };
}

const compile = (parts: readonly (string | number)[]): Promise<Validator> => {
  const pointer = parts.map((part) => `/${`${part}`.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
  return validate(`${ROOT}#${encodeURI(pointer)}`);
};

function headerMistakes({ headers }: Sent): string[] {
  const missing = ['api-key', 'x-pinecone-api-version'].filter((name) => !headers.get(name));
  const version = headers.get('x-pinecone-api-version');
  return [
    ...missing.map((name) => `header ${name}: missing`),
    ...(version && !API_VERSION.test(version) ? ['header x-pinecone-api-version: not a version'] : []),
  ];
}

function bodyMistakes(validator: Validator, { headers, body }: Sent): string[] {
  const json = headers.get('content-type')?.split(';')[0] === 'application/json';
  return [
    ...(json ? [] : ['header content-type: not application/json']),
    ...(body === undefined ? ['body: not JSON'] : mistakes(validator, body, 'body')),
  ];
}

function parametersMistakes(parameters: readonly (Parameter & { validator: Validator })[], { query }: Sent): string[] {
  const known = parameters.filter((parameter) => parameter.in === 'query');
  const unknown = [...new Set(query.keys())].filter((name) => !known.some((parameter) => parameter.name === name));
  return [
    ...unknown.map((name) => `query ${name}: unknown`),
    ...known.flatMap(({ name, required, schema, validator }) => {
      const values = query.getAll(name);
      if (values.length === 0) return required ? [`query ${name}: missing`] : [];
      if (schema.type === 'array') return mistakes(validator, values, `query ${name}`);
      if (values.length > 1) return [`query ${name}: more than once`];
      return mistakes(validator, fromText(values[0] as string, schema.type), `query ${name}`);
    }),
  ];
}

const fromText = (text: string, type: string): unknown =>
  type === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text;

function mistakes(validator: Validator, value: unknown, where: string): string[] {
  const output = validator(abridged(value) as SchemaFragment, 'BASIC');
  if (output.valid) return [];
  const told = (output.errors ?? []).map(({ instanceLocation, keyword }) => `${instanceLocation} ${ruleOf(keyword)}`);
  return (told.length > 0 ? told : ['invalid']).map((mistake) => `${where}: ${mistake}`);
}

/** `validate` is the rule that nothing fits: it stands where a closed object has one more property. */
const ruleOf = (keyword: string): string =>
  keyword.slice(keyword.lastIndexOf('/') + 1).replace(/^validate$/, 'unknown');

/**
 * The same without all but the first number of each vector: the validator takes 0.2 ms for 512 numbers, and there may be
 * a hundred vectors in an answer. Lists that hold anything but numbers are left as they are.
 */
const abridged = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(abridged);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, isVector(key, part) ? part.slice(0, 1) : abridged(part)]),
  );
};

const isVector = (key: string, value: unknown): value is number[] =>
  (key === 'values' || key === 'vector') && Array.isArray(value) && value.every(Number.isFinite);
