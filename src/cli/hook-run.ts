import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import http, { type IncomingMessage, type RequestOptions } from 'node:http';
import { basename } from 'node:path';
import type { Environment } from '../config/mistakes.ts';
import { spokenIn } from '../move/injected.ts';
import { type HookClient, hookClient, type Occasion } from './hook-clients.ts';
import { type Block, keepPassed, withoutPassed } from './hook-session.ts';
import { requireUserName } from './user-name.ts';

/** The options of one hook, as written in its command. */
export interface HookOptions {
  readonly user?: string;
  readonly scope?: string;
  readonly url?: string;
  readonly 'key-file'?: string;
  readonly budget?: string;
  readonly deadline?: string;
  readonly capture?: boolean;
}

export const DEFAULT_URL = 'http://127.0.0.1:8080';
/** Tokens, `o200k_base`. */
export const DEFAULT_BUDGET = 500;
export const DEFAULT_DEADLINE_MS = 300;

/** Bytes of an event, and of an answer. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Characters of a prompt that are used as the query: its beginning says what it is about. */
const MAX_QUERY = 8000;
/** Memories that one prompt may add. */
const MAX_CAPTURED = 10;
const MARK = 'remember:';

/** What clients send; each sends more. */
interface EventInput {
  readonly prompt?: unknown;
  readonly cwd?: unknown;
  readonly workspace_roots?: unknown;
  readonly session_id?: unknown;
  readonly sessionId?: unknown;
  /** Of a sub-agent, whose prompts a model writes. */
  readonly agent_id?: unknown;
  readonly source?: unknown;
}

/** What is printed, and what went wrong. */
interface Outcome {
  readonly output: string;
  readonly failures: readonly string[];
}

type Answer<Field extends string> = Readonly<Record<string, unknown> & Record<Field, string>>;

interface Gateway {
  /** The answer. Throws if it has no text in this field. */
  post<Field extends string>(path: string, body: object, field: Field): Promise<Answer<Field>>;
}

/**
 * Runs one hook: reads the event, asks the gateway for context, adds marked memories. Reading and requests share the deadline.
 * Never throws: whatever fails is in `failures`, without contents.
 */
export async function runHook(
  [name = '', event = '']: readonly string[],
  options: HookOptions,
  env: Environment,
  stdin: AsyncIterable<Buffer | string>,
): Promise<Outcome> {
  const deadline = Number(options.deadline ?? DEFAULT_DEADLINE_MS);
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error(`no answer within ${deadline} ms`)), deadline);
  try {
    const client = hookClient(name);
    const kind = client && Object.hasOwn(client.events, event) ? client.events[event] : undefined;
    if (!client || !kind) throw new Error(`unknown event '${name} ${event}'`);
    const user_id = options.user || env.OMP_USER_ID || requireUserName();
    const input = await beforeAbort(readEvent(stdin), late.signal);
    const gateway = gatewayOf(options, env, late.signal);
    const prompt = spokenBy(input);
    const query = kind.occasion === 'prompt' ? prompt : sessionQuery(input);
    const contents = options.capture && kind.occasion === 'prompt' ? marked(prompt) : [];
    const [context, ...added] = await Promise.allSettled([
      kind.takesContext ? askContext(gateway, { user_id, query, options, occasion: kind.occasion }) : NOTHING,
      ...contents.map((content) =>
        gateway.post('/memories', newMemory({ content, user_id, name, options, input }), 'id'),
      ),
    ]);
    const stored = added.filter(({ status }) => status === 'fulfilled').length;
    const notice = stored === 0 ? '' : `omp-gateway: remembered ${stored === 1 ? 'a memory' : `${stored} memories`}`;
    const failures = [context, ...added].flatMap((each) => (each.status === 'rejected' ? messageOf(each.reason) : []));
    const block = context.status === 'fulfilled' ? context.value : NOTHING;
    const text = newIn(block, { client, occasion: kind.occasion, input, env, failures });
    const lost = contents.length - stored;
    if (lost > 0) failures.unshift(`${lost === 1 ? 'a memory was' : `${lost} memories were`} not stored`);
    const output = text === '' && notice === '' ? '' : `${JSON.stringify(client.answer(event, text, notice))}\n`;
    return { output, failures: [...new Set(failures)] };
  } catch (error) {
    return { output: '', failures: [messageOf(error)] };
  } finally {
    clearTimeout(timer);
  }
}

const NOTHING: Block = { text: '', citations: [] };

/** What the person wrote: programs report texts of other origin as prompts too. */
const spokenBy = ({ prompt, agent_id }: EventInput): string =>
  typeof prompt === 'string' && agent_id === undefined ? spokenIn(prompt) : '';

const sessionOf = ({ session_id, sessionId = session_id }: EventInput): string | undefined =>
  typeof sessionId === 'string' && sessionId !== '' ? sessionId : undefined;

interface Passing {
  readonly client: HookClient;
  readonly occasion: Occasion;
  readonly input: EventInput;
  readonly env: Environment;
  /** Takes what fails, which keeps nothing from the model. */
  readonly failures: string[];
}

/** The text of a block without what the start of the session passed already. */
function newIn(block: Block, { client, occasion, input, env, failures }: Passing): string {
  const session = sessionOf(input);
  const isFollowed = Object.values(client.events).some((each) => each.occasion === 'prompt' && each.takesContext);
  if (session === undefined || block.text === '' || !isFollowed) return block.text;
  if (occasion === 'prompt') return withoutPassed(session, block, env);
  try {
    keepPassed(session, block, env);
  } catch (error) {
    failures.push(`the first prompt may pass the same memories again: ${messageOf(error)}`);
  }
  return block.text;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Rejects with the signal's reason as soon as it aborts. */
const beforeAbort = <Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> =>
  Promise.race([
    work,
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
  ]);

/** The event as an object. Ends with its closing brace, since some clients leave standard input open. */
async function readEvent(stdin: AsyncIterable<Buffer | string>): Promise<EventInput> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    const buffer = Buffer.from(chunk);
    bytes += buffer.length;
    if (bytes > MAX_BYTES) throw new Error(`the event is longer than ${MAX_BYTES} bytes`);
    chunks.push(buffer);
    if (!buffer.toString().trimEnd().endsWith('}')) continue;
    const event = parsed(Buffer.concat(chunks).toString());
    if (event) return event;
  }
  throw new Error('the event on standard input is not a JSON object');
}

function parsed(text: string): EventInput | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A session begins without a prompt. Empty if its context still has what an earlier hook passed. */
function sessionQuery({ source, cwd, workspace_roots }: EventInput): string {
  if (source === 'resume') return '';
  const root = Array.isArray(workspace_roots) ? workspace_roots[0] : cwd;
  const project = typeof root === 'string' ? basename(root) : '';
  return `preferences, conventions and decisions for the project ${project}`.trimEnd();
}

/** The text behind each line that begins with `remember:`. */
const marked = (prompt: string): string[] =>
  prompt
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.slice(0, MARK.length).toLowerCase() === MARK)
    .map((line) => line.slice(MARK.length).trim())
    .filter((content) => content !== '')
    .slice(0, MAX_CAPTURED);

interface Capture {
  readonly content: string;
  readonly user_id: string;
  readonly name: string;
  readonly options: HookOptions;
  readonly input: EventInput;
}

/** The body of `POST /memories`. */
const newMemory = ({ content, user_id, name, options, input }: Capture): object => ({
  content,
  user_id,
  ...scopeOf(options),
  source: { app: name, type: 'explicit', ref: sessionOf(input) },
});

/**
 * The scope of new memories, and the prefix of those that are found: a prefix may end with a slash and an asterisk, a scope may
 * not, and `acme/` would not find what was added to `acme`.
 */
function scopeOf({ scope = '' }: HookOptions): { scope?: string } {
  const trimmed = scope.replace(/\/?\*?$/, '');
  return trimmed === '' ? {} : { scope: trimmed };
}

interface ContextRequest {
  readonly user_id: string;
  readonly query: string;
  readonly options: HookOptions;
  readonly occasion: Occasion;
}

async function askContext(gateway: Gateway, { user_id, query, options, occasion }: ContextRequest): Promise<Block> {
  // Characters the gateway rejects may stand in a prompt.
  const text = query.slice(0, MAX_QUERY).replaceAll('\0', ' ').toWellFormed();
  if (text.trim() === '') return NOTHING;
  const body = {
    user_id,
    query: text,
    token_budget: Number(options.budget ?? DEFAULT_BUDGET),
    ...scopeOf(options),
    // A made-up query resembles little: the best that fits is wanted.
    ...(occasion === 'session' && { min_score: 0 }),
  };
  const { text: found, citations } = await gateway.post('/context', body, 'text');
  return { text: found, citations: Array.isArray(citations) ? citations : [] };
}

function gatewayOf(options: HookOptions, env: Environment, signal: AbortSignal): Gateway {
  const base = (options.url || env.OMP_URL || DEFAULT_URL).replace(/\/$/, '');
  checkUrl(base);
  const key = options['key-file'] === undefined ? env.OMP_KEY : readKey(options['key-file']);
  const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) };
  return {
    async post(path, body, field) {
      const { status, text } = await send(base + path, { method: 'POST', headers, signal }, JSON.stringify(body)).catch(
        (error: NodeJS.ErrnoException) => {
          if (signal.aborted) throw signal.reason;
          throw new Error(`the gateway at ${base} cannot be reached: ${error.code ?? error.message}`);
        },
      );
      if (status < 200 || status > 299) throw new Error(`the gateway answered ${status}${reasonIn(text)}`);
      const answer = (parsed(text) ?? {}) as Record<string, unknown>;
      if (typeof answer[field] !== 'string') throw new Error(`what answers at ${base} is not a gateway`);
      return answer as Answer<typeof field>;
    },
  };
}

/**
 * Sends a request without the client of `clients/typescript`: `fetch` would more than double the 90 ms of a hook. Follows no
 * redirect, which could send the key to another host. The text is empty if the body is too long for an answer of a gateway.
 */
async function send(url: string, options: RequestOptions, body: string): Promise<{ status: number; text: string }> {
  const { request } = url.startsWith('https:') ? await import('node:https') : http;
  const sent = request(url, options).end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BYTES) chunks.push(chunk);
  }
  return { status: response.statusCode ?? 0, text: bytes > MAX_BYTES ? '' : Buffer.concat(chunks).toString() };
}

/** The code of an error envelope. Its message may quote the request. */
function reasonIn(text: string): string {
  const { error } = (parsed(text) ?? {}) as { error?: { code?: unknown } };
  return typeof error?.code === 'string' ? ` ${error.code.slice(0, 40)}` : '';
}

/** Throws unless it is a URL that may be written down. */
export function checkUrl(url: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) throw new Error('the URL must begin with http:// or https://');
  if (parsed.username || parsed.password) throw new Error('the URL must not contain a password: use --key-file');
}

/** Throws if other users of the machine may read the file. */
export function readKey(file: string): string {
  let mode: number;
  let key: string;
  try {
    ({ mode } = statSync(file));
    key = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new Error(`the key file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  if ((mode & 0o077) !== 0) throw new Error(`other users may read the key file ${file}: run chmod 600`);
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Error(`the key file ${file} must hold one key and nothing else`);
  return key;
}
