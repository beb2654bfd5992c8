import { randomUUID } from 'node:crypto';
import {
  type Output,
  registerSchema,
  type SchemaFragment,
  setShouldValidateFormat,
  unregisterSchema,
  validate,
} from '@hyperjump/json-schema/openapi-3-1';
import '@hyperjump/json-schema/formats';
import type { Client } from '../support/client.ts';

setShouldValidateFormat(true);

/** As much of OpenAPI 3.1 as the tests read. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly $ref?: string;
}

export interface Parameter {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

interface Content {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface Answer {
  readonly description: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, Content>>;
}

export type SecurityScheme =
  | { readonly type: 'http'; readonly scheme: string }
  | { readonly type: 'apiKey'; readonly in: string; readonly name: string };

type Security = readonly Readonly<Record<string, readonly string[]>>[];

interface Operation {
  readonly operationId: string;
  readonly security?: Security;
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, Answer>>;
}

export interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security: Security;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  };
}

/** One endpoint of the document, with its JSON pointer and its parameters looked up. */
export interface Endpoint {
  readonly method: string;
  readonly path: string;
  readonly pointer: string;
  readonly operation: Operation;
  readonly parameters: readonly Parameter[];
}

export const fetchDocument = async (client: Client): Promise<Document> =>
  (await client.ask('/openapi.json')).body as Document;

const escapePart = (part: string): string => part.replaceAll('~', '~0').replaceAll('/', '~1');
export const pointerTo = (...parts: readonly string[]): string => parts.map((part) => `/${escapePart(part)}`).join('');

const last = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1);

export const endpointsOf = ({ paths, components }: Document): Endpoint[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      pointer: pointerTo('paths', path, method),
      operation,
      parameters: (operation.parameters ?? []).map((parameter) =>
        '$ref' in parameter ? (components.parameters[last(parameter.$ref)] as Parameter) : parameter,
      ),
    })),
  );

export const resolve = ({ components }: Document, schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (components.schemas[last(schema.$ref)] as Schema);

export interface Judge {
  /** What a value has against it by the schema at a JSON pointer into the document; empty when nothing. */
  mistakes(pointer: string, value: unknown): Promise<string[]>;
  close(): void;
}

/** `closed` also counts keys the document does not name, which it lets pass for the sake of newer servers. */
export const judgeOf = (document: Document, { closed }: { closed: boolean }): Judge => {
  const close = (_key: string, value: unknown) =>
    closed && value !== null && typeof value === 'object' && 'properties' in value && 'additionalProperties' in value
      ? { ...value, additionalProperties: false }
      : value;
  // Read once: by the address of a file it would be read for each schema of it.
  const url = `https://gateway.test/${randomUUID()}`;
  registerSchema(JSON.parse(JSON.stringify(document, close)), url, 'https://spec.openapis.org/oas/3.1/schema-base');
  return {
    mistakes: async (pointer, value) =>
      describeMistakes(await validate(`${url}#${encodeURI(pointer)}`, value as SchemaFragment, 'BASIC')),
    close: () => unregisterSchema(url),
  };
};

/** The same against the official schema of OpenAPI 3.1 documents. */
export const judgeDocument = async (document: unknown): Promise<string[]> =>
  describeMistakes(
    await validate('https://spec.openapis.org/oas/3.1/schema-base', document as SchemaFragment, 'BASIC'),
  );

const describeMistakes = (output: Output): string[] =>
  output.valid
    ? []
    : [
        'invalid',
        ...(output.errors ?? []).map(({ instanceLocation, keyword }) => `${instanceLocation}: ${last(keyword)}`),
      ];
