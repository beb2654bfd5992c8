import { afterAll, describe, expect, it } from 'vitest';
import { endpointsOf, fetchDocument, type Parameter, resolve, type Schema } from '../description/document.ts';
import { closedTo } from '../support/closed.ts';
import { FULL } from '../support/full.ts';
import { LEAST_SHARE, shareOfProbes, startTicker } from '../support/hold.ts';
import { exchange } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

/*
 * No text in any field, parameter or header of the OpenAPI document may block the event loop. A new field or route is
 * covered as soon as the document has it.
 */

const server = await startServer({
  trusted_proxies: ['127.0.0.1'],
  cors_origins: ['https://app.example'],
  allowed_hosts: ['gateway', '127.0.0.1'],
});
const { authenticator, keys } = await closedTo('somebody');
const closed = await startServer({ authenticator });
const ticker = startTicker();
afterAll(async () => {
  await ticker.close();
  await server.close();
  await closed.close();
});

/** Below the limits of a body and of the headers. */
const BODY_BYTES = 150_000;
const HEAD_BYTES = 15_000;
/** One parameter blocks the loop for a shorter time, so this many are sent at once. */
const PARAMETER_COPIES = 8;

/** Texts that are expensive for regular expressions, normalization, parsers and tokenizers. */
const HOSTILE: Readonly<Record<string, (times: number) => string>> = {
  'combining marks': (times) => `a${'\u0301'.repeat(times / 2)}${'\u0316'.repeat(times / 2)}`,
  'other marks': (times) => '\uff9e\u0301\u05b0'.repeat(times / 3),
  'one letter': (times) => 'a'.repeat(times),
  'unbroken words': (times) => `${'a'.repeat(1_999)} `.repeat(times / 2_000),
  'nested punctuation': (times) => '[({"<'.repeat(times / 5),
  'digits and no number': (times) => `${'1'.repeat(times)}x`,
  'an endless date': (times) => `2024${'T'.repeat(times)}`,
  'another endless date': (times) => `2024-01-01T${'+0'.repeat(times / 2)}x`,
  'CJK characters': (times) => '日本語中文字漢'.repeat(times / 7),
  'symbols that become eighteen letters': (times) => '\ufdfa'.repeat(times),
  blanks: (times) => `${' '.repeat(times)}x`,
  wildcards: (times) => '*a?'.repeat(times / 3),
  slashes: (times) => '/'.repeat(times),
  'Bearer and blanks': (times) => `Bearer${' '.repeat(times)}`,
};
const PROSE = 'The user likes green tea in the morning, and coffee after lunch. ';
/** A text with this many bytes in its encoding. */
const grown = (make: (times: number) => string, bytes: number, sizeOf: (text: string) => number): string => {
  const text = make(bytes);
  return make(Math.floor((bytes * bytes) / sizeOf(text)));
};
const prose = (times: number): string => PROSE.repeat(times / PROSE.length);

type Send = (text: string) => Promise<{ status: number }>;
interface TextInput {
  readonly name: string;
  readonly bytes: number;
  readonly sizeOf: (text: string) => number;
  readonly send: Send;
  /** By default 1. */
  readonly copies?: number;
}

const inUrl = (text: string): number => encodeURIComponent(text).length;
const inHeader = (text: string): number => Buffer.byteLength(text);
const inBody = (text: string): number => Buffer.byteLength(JSON.stringify(text));

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}
const send = (port: number, { method, path, headers = {}, body }: Sent) => {
  const bytes = body === undefined ? '' : JSON.stringify(body);
  const all: Record<string, string> = {
    host: 'gateway',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    'content-length': String(Buffer.byteLength(bytes)),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${Buffer.from(value).toString('latin1')}`);
  const head = Buffer.from([`${method} ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n'), 'latin1');
  return exchange(port, head, bytes);
};

const document = await fetchDocument(server.client);
const { id } = await server.client.add({ content: 'likes green tea', user_id: 'u1' });
const exampleOf = (schema: Schema & { examples?: readonly unknown[] }): unknown => schema.examples?.[0] ?? 'x';

/** Every string in a value of the schema, also in lists and objects. A number may be sent as a string too. */
function placesIn(schema: Schema): ((text: string) => unknown)[] {
  const { properties, items, anyOf } = resolve(document, schema) as Schema & { anyOf?: readonly Schema[] };
  const within = Object.entries(properties ?? {}).flatMap(([name, inner]) =>
    placesIn(inner).map((place) => (text: string) => ({ [name]: place(text) })),
  );
  const ofItems = items ? placesIn(items).map((place) => (text: string) => [place(text)]) : [];
  const many = items ? [(text: string) => [...text]] : [];
  const either = (anyOf ?? []).flatMap(placesIn);
  const found = [...within, ...ofItems, ...many, ...either];
  return found.length > 0 ? found : [(text) => text];
}

function* places(): Generator<TextInput> {
  for (const { path, method, operation, parameters } of endpointsOf(document)) {
    const at = (values: Readonly<Record<string, string>>) => {
      const given = parameters.filter(
        ({ name, required, in: where }) => name in values || (required && where !== 'header'),
      );
      const valueFor = ({ name, schema }: Parameter) =>
        encodeURIComponent(values[name] ?? (name === 'id' ? id : String(exampleOf(schema))));
      const filled = given
        .filter((parameter) => parameter.in === 'path')
        .reduce((whole, parameter) => whole.replace(`{${parameter.name}}`, valueFor(parameter)), path);
      const query = given.filter((parameter) => parameter.in === 'query');
      return query.length === 0
        ? filled
        : `${filled}?${query.map((each) => `${each.name}=${valueFor(each)}`).join('&')}`;
    };
    const schema = operation.requestBody?.content['application/json']?.schema;
    const { properties = {}, required = [] } = (schema ? resolve(document, schema) : {}) as Schema & {
      required?: string[];
    };
    const body = (more: object) => ({
      ...Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] as Schema)])),
      // Its own user, so that no other search reads what is stored here.
      ...(method === 'POST' && { user_id: freshUser() }),
      ...more,
    });
    const usual = schema === undefined ? {} : { body: body({}) };
    for (const { name, in: where } of parameters) {
      const sends: Send =
        where === 'header'
          ? (text) => send(server.port, { method, path: at({}), ...usual, headers: { [name]: text } })
          : (text) => send(server.port, { method, path: at({ [name]: text }), ...usual });
      const sizeOf = where === 'header' ? inHeader : inUrl;
      yield {
        name: `${method} ${path}, ${where} ${name}`,
        bytes: HEAD_BYTES,
        sizeOf,
        send: sends,
        copies: PARAMETER_COPIES,
      };
    }
    if (schema === undefined) continue;
    const fields = Object.entries(properties).flatMap(([name, inner]) =>
      placesIn(inner).map((place, i) => ({
        name: `${name}${i === 0 ? '' : ` (${i})`}`,
        of: (text: string) => ({ [name]: place(text) }),
      })),
    );
    const own = [
      { name: 'an x- key', of: (text: string) => ({ 'x-own': [text] }) },
      { name: 'the name of an x- key', of: (text: string) => ({ [`x-${text}`]: 1 }) },
      { name: 'a key that is ignored', of: (text: string) => ({ [text]: text }) },
    ];
    for (const field of [...fields, ...own]) {
      const sends: Send = (text) => send(server.port, { method, path: at({}), body: body(field.of(text)) });
      yield { name: `${method} ${path}, ${field.name}`, bytes: BODY_BYTES, sizeOf: inBody, send: sends };
    }
  }
}

/** Headers that the OpenAPI document does not name. */
const HEADERS = [
  ...['authorization', 'x-api-key', 'x-request-id', 'x-user-id', 'idempotency-key', 'x-consistency-token'],
  ...['traceparent', 'tracestate', 'forwarded', 'x-forwarded-for', 'cookie', 'content-type', 'host', 'origin'],
  ...['accept', 'accept-encoding', 'accept-language', 'if-none-match', 'range', 'user-agent', 'referer'],
];
/** One request for each of them. */
const allHeaders = (name: string, of: RunningServer, known: Readonly<Record<string, string>> = {}): TextInput => ({
  name,
  bytes: HEAD_BYTES,
  sizeOf: inHeader,
  async send(text) {
    const body = { content: 'tea', user_id: freshUser() };
    const sent = HEADERS.map((each) => ({
      ...{ method: 'POST', path: '/memories', body },
      headers: { ...known, [each]: text },
    }));
    const replies = await Promise.all(sent.map((request) => send(of.port, request)));
    return { status: Math.max(...replies.map(({ status }) => status)) };
  },
});

/** Compares all hostile texts at once with as many harmless ones. */
async function keepsLoopFree({ name, bytes, sizeOf, send, copies = 1 }: TextInput): Promise<void> {
  const texts = Object.values(HOSTILE).flatMap((make) => Array<string>(copies).fill(grown(make, bytes, sizeOf)));
  const sendAll = (all: readonly string[]) => async () => {
    const replies = await Promise.all(all.map(send));
    expect(replies.map(({ status }) => status).filter((status) => status >= 500)).toEqual([]);
  };
  const harmless = sendAll(texts.map(() => grown(prose, bytes, sizeOf)));
  const kind = `${bytes} bytes, ${copies} copies`;
  const share = await shareOfProbes(server.port, ticker, { kind, hostile: sendAll(texts), harmless });
  expect(share, name).toBeGreaterThan(LEAST_SHARE);
}

describe('no text blocks the event loop', () => {
  const all = [...places()];
  const nameOf = ({ name }: TextInput) => name.replace(/^.*, (?:query |header |path )?/, '');
  // The same field of several routes has the same schema: in the full run each is checked, otherwise one of them.
  const checked = FULL
    ? all
    : all.filter((place, i) => all.findIndex((other) => nameOf(other) === nameOf(place)) === i);

  it('[Decision 8] the OpenAPI document has the fields and parameters', () => {
    const names = all.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        'POST /memories, valid_from',
        'GET /memories, query since',
        'GET /memories/search, query min_score',
        'PATCH /memories/{id}, path id',
        'POST /context, query',
        'POST /memories, header Idempotency-Key',
      ]),
    );
  });

  it.each(checked)('[Decision 8] $name', keepsLoopFree);

  it.each([
    allHeaders('headers of an open gateway', server),
    allHeaders('headers of a closed gateway', closed),
    allHeaders('headers beside a good key', closed, { authorization: `Bearer ${keys.somebody}` }),
  ])('[Decision 8] $name', keepsLoopFree);
});

describe('no stored text blocks it', () => {
  const stored = async (contents: readonly string[]): Promise<string> => {
    const user_id = freshUser();
    for (const content of contents) await server.client.add({ user_id, content });
    return user_id;
  };
  const UNBROKEN = Array.from({ length: 3 }, () => `${'a'.repeat(1_999)} `.repeat(520));
  const CJK = Array.from({ length: 3 }, () => `日${'本語中文字漢'.repeat(333)} `.repeat(20));

  it.each([
    ['unbroken words', UNBROKEN, 'a'.repeat(64), 500],
    ['unbroken words, and a large budget', UNBROKEN, 'a'.repeat(64), 1_000_000],
    ['CJK characters, and a large budget', CJK, '日', 1_000_000],
  ])('[Decision 10] in a context: %s', async (_, contents, query, token_budget) => {
    const hostileUser = await stored(contents);
    const usual = await stored(contents.map((content) => prose(content.length)));
    const ask = (user_id: string, words: string) => () =>
      send(server.port, { method: 'POST', path: '/context', body: { user_id, query: words, token_budget } });
    const share = await shareOfProbes(server.port, ticker, {
      kind: query,
      hostile: ask(hostileUser, query),
      harmless: ask(usual, 'tea'),
    });
    expect(share).toBeGreaterThan(LEAST_SHARE);
  });
});
