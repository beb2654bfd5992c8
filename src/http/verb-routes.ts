import { type Context, type Handler, Hono } from 'hono';
import { invalidRequest, OmpError } from '#contract';
import type { Gate } from '../verbs/gate.ts';
import { VERB_TABLE } from '../verbs/index.ts';
import { type FileAnswer, fieldsIn, queryFieldsOf, type Verb } from '../verbs/verb.ts';
import type { WireMemory } from '../verbs/wire-memory.ts';
import { etagOf, namesEtag } from '../verbs/wire-memory.ts';
import { itemError } from './error-envelope.ts';
import { fileAnswer } from './file-answer.ts';
import { type Env, readHeader, readJson } from './request.ts';

/** A route for each verb: makes the input from the request, runs the verb, and answers. */
export function verbRoutes({ hasEtag }: Pick<Gate, 'hasEtag'>, maxRequestBytes: number): Hono<Env> {
  const routes = new Hono<Env>();
  for (const verb of Object.values<Verb>(VERB_TABLE)) {
    const read = inputReader(verb, maxRequestBytes);
    const answer = answerOf(verb, hasEtag);
    const handler: Handler<Env> = async (c) =>
      answer(c, await c.get('session').run(verb, await read(c), c.get('call')));
    routes.on(verb.method, verb.path.replaceAll(/\{(\w+)\}/g, ':$1'), handler);
  }
  return routes;
}

/** Makes the input of a verb: its fields come from the path, from headers, and from the body or the query string. */
export function inputReader(verb: Verb, maxRequestBytes: number): (c: Context<Env>) => Promise<unknown> {
  const { input, path, headers = {}, body } = verb;
  const inPath = fieldsIn(path);
  const headerFields = Object.entries(headers);
  const others = queryFieldsOf(verb);
  const inQuery = new Set(others);
  const repeatable = others.find((name) => isRepeatable(input.shape[name]));
  return async (c) => {
    let fields: Record<string, unknown> = {};
    if (body) {
      const json = await readJson(c, maxRequestBytes);
      if (body.field !== undefined) fields = { ...(inQuery.size > 0 && readQuery(c, inQuery)), [body.field]: json };
      else if (isObject(json)) fields = json;
      else return json;
    } else if (inQuery.size > 0) {
      c.get('session').require(verb);
      fields = readQuery(c, inQuery, repeatable);
    }
    for (const name of inPath) fields[name] = c.req.param(name);
    // Set even without a header: the body cannot stand in for it.
    for (const [name, header] of headerFields) {
      if (Object.hasOwn(fields, name)) c.get('call').ignored(name);
      fields[name] = readHeader(c, header);
    }
    return fields;
  };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isRepeatable = (schema: unknown): boolean =>
  (schema as { meta(): { param?: { explode?: boolean } } | undefined }).meta()?.param?.explode === true;

function answerOf(
  { success: { status, tagged, file } }: Verb,
  hasEtag: Gate['hasEtag'],
): (c: Context<Env>, output: unknown) => Response {
  if (status === 204) return (c) => c.body(null, 204);
  if (file) return (c, output) => fileAnswer(c, output as FileAnswer);
  if (tagged) {
    return (c, output) =>
      hasEtag((output as WireMemory).id)
        ? answerMemory(c, output as WireMemory, status)
        : c.json(output as WireMemory, status);
  }
  return (c, output) => c.json(withItemErrors(c, output as object), status);
}

function answerMemory(c: Context<Env>, memory: WireMemory, status?: 201): Response {
  const etag = etagOf(memory);
  c.header('etag', etag);
  const etags = c.req.method === 'GET' ? c.req.header('if-none-match') : undefined;
  return etags !== undefined && namesEtag(etags, etag) ? c.body(null, 304) : c.json(memory, status);
}

/** The errors of single memories are logged like those of requests, and sent without their causes. */
function withItemErrors(c: Context<Env>, output: object): object {
  const { results } = output as { readonly results?: readonly { readonly error?: unknown }[] };
  if (!results?.some(({ error }) => error instanceof OmpError)) return output;
  return { results: results.map((one) => (one.error instanceof OmpError ? { error: itemError(one.error, c) } : one)) };
}

/**
 * The values of these names in a query string. Unknown names are ignored. A known name given twice is an error: using only
 * one of its values would silently drop a filter. The values of `repeatable` are a list.
 */
function readQuery(
  c: Context<Env>,
  names: ReadonlySet<string>,
  repeatable?: string,
): Record<string, string | string[]> {
  const values: Record<string, string | string[]> = {};
  for (const [name, value] of pairs(c.req.url)) {
    if (!names.has(name)) {
      c.get('call').ignored(name);
      continue;
    }
    const before = Object.hasOwn(values, name) ? values[name] : undefined;
    if (name === repeatable) values[name] = [...(before ?? []), value];
    else if (before !== undefined) throw invalidRequest(`${name}: given more than once`);
    else values[name] = value;
  }
  return values;
}

function* pairs(url: string): Generator<[name: string, value: string]> {
  const start = url.indexOf('?');
  if (start < 0) return;
  for (const pair of url.slice(start + 1).split('&')) {
    const equals = pair.indexOf('=');
    yield equals < 0 ? [decode(pair), ''] : [decode(pair.slice(0, equals)), decode(pair.slice(equals + 1))];
  }
}

function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw invalidRequest('query string: malformed percent-encoding');
  }
}
