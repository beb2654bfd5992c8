import { afterAll, expect, it } from 'vitest';
import type { KeyStore } from '#contract';
import { ALL_GRANTS } from '../../src/core/grants.ts';
import { type Document, endpointsOf, fetchDocument, resolve, type Schema } from '../description/document.ts';
import { startServer } from '../support/server.ts';

const keys = {
  create: async (key: object) => ({ ...key, created_at: '', revoked_at: null, last_used_at: null }),
} as unknown as KeyStore;
const principal = { id: 'key', app: null, users: null, grants: { ...ALL_GRANTS, admin: true } };
const server = await startServer({
  alter: (provider) => ({ ...provider, keys }),
  authenticator: { authenticate: async () => principal },
});
afterAll(() => server.close());

/** An offset leads out of the years that a database has. */
const DATES = ['9999-12-31T23:59:59-14:00', '0001-01-01T00:00:00+14:00'];

interface Field extends Schema {
  readonly format?: string;
}
type Path = readonly (string | number)[];

/** Where a body has dates. */
function* datesIn(document: Document, given: Schema, place: Path = []): Generator<Path> {
  const schema: Field = { ...resolve(document, given), ...given };
  if (schema.format === 'date-time') yield place;
  for (const one of schema.anyOf ?? []) yield* datesIn(document, one, place);
  if (schema.items) yield* datesIn(document, schema.items, [...place, 0]);
  for (const [name, inner] of Object.entries(schema.properties ?? {}))
    yield* datesIn(document, inner, [...place, name]);
}

/** The value with another one in a place. */
function withValue(value: unknown, [name, ...rest]: Path, inner: unknown): unknown {
  if (name === undefined) return inner;
  const changed = withValue((value as Record<string | number, unknown> | undefined)?.[name], rest, inner);
  return typeof name === 'number' ? [changed] : { ...(value as object), [name]: changed };
}

const document = await fetchDocument(server.client);
const sent = endpointsOf(document).flatMap(({ method, path, operation, parameters }) => {
  const url = path.replace('{id}', 'mem_x');
  const queries = parameters.filter(({ schema }) => (schema as Field).format === 'date-time');
  const required = parameters.filter((one) => one.in === 'query' && one.required);
  const others = Object.fromEntries(required.map(({ name }) => [name, 'u1']));
  const { schema, example } = operation.requestBody?.content['application/json'] ?? {};
  return [
    ...queries.map(({ name }) => ({
      title: `${method} ${path} ${name}`,
      send: (date: string) => server.client.ask(url, { ...others, [name]: date }),
    })),
    ...(schema ? [...datesIn(document, schema)] : []).map((place) => ({
      title: `${method} ${path} ${place.join('.')}`,
      send: (date: string) => server.client.tell(method, url, withValue(example, place, date)),
    })),
  ];
});

it('knows the dates of keys, imports, changes and queries', () => {
  const titles = ['POST /keys expires_at', 'POST /import memories.0.updated_at', 'GET /audit since'];
  expect(sent.map(({ title }) => title)).toEqual(expect.arrayContaining(titles));
});

it.each(sent.map(({ title, send }) => [title, send] as const))(
  '[Decision 11] a date that UTC moves out of the years 0001 to 9999 is rejected: %s',
  async (_, send) => {
    for (const date of DATES) {
      const { status, text } = await send(date);
      expect([status < 500, text], date).toEqual([true, expect.stringContaining('between the years 0001 and 9999')]);
    }
  },
);
