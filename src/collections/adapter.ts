import type { Call } from '#contract';
import type { Failure } from './collection.ts';

/*
 * What adapters share: loading a client library, requests that stop with their call, fields in objects, and what an answer of an HTTP interface means.
 */

/**
 * Loads the client library of a database, an optional peer dependency. Throws for an operator if it is not installed. `wanted`: its name and the
 * versions that were tried, as npm takes them, such as `@libsql/client@0.18`.
 */
export async function loadPackage<Module>(load: () => Promise<Module>, wanted: string): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const name = wanted.slice(0, wanted.lastIndexOf('@'));
    // A package that is there, and lacks one of its own, says so itself.
    if (code !== 'ERR_MODULE_NOT_FOUND' || !message.includes(`'${name}'`)) throw error;
    throw new Error(
      `the package ${name} is not installed; install it beside the gateway: npm install ${wanted}, with -g if the gateway is`,
    );
  }
}

/** Makes a request with a signal of its own, which aborts with the call: `fetch` never lets go of the one it got, and a call may make thousands. */
export async function stoppable<Result>(
  call: Call,
  request: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const stop = call.onAbort(() => controller.abort(call.signal.reason));
  try {
    return await request(controller.signal);
  } finally {
    stop();
  }
}

/** Sets a value under a name whose dots go into objects; those that are missing are made. */
export function setPath(into: Record<string, unknown>, name: string, value: unknown): void {
  const steps = name.split('.');
  const last = steps.pop() as string;
  let object = into;
  for (const step of steps) {
    // What every object inherits, such as `constructor`, is no field.
    if (!Object.hasOwn(object, step) || object[step] === null) object[step] = {};
    object = object[step] as Record<string, unknown>;
  }
  object[last] = value;
}

/** Codes of errors of connections that were never made: nothing was sent. */
const UNREACHED: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** Codes of connections that broke or were too slow: what was sent may have been done. */
const BROKEN: ReadonlySet<unknown> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);
/** An error may be the cause of another one, and so on. */
const MAX_CAUSES = 8;

/** What a failed connection means, whatever library met it: by the code of the error or of one of its causes. Undefined: it is another error. */
export function failureOfConnection(title: string, error: unknown): Failure | undefined {
  let at = error;
  for (let depth = 0; depth < MAX_CAUSES && at instanceof Error; depth++) {
    const { code } = at as NodeJS.ErrnoException;
    if (UNREACHED.has(code))
      return { message: `${title} cannot be reached`, retry: 'safe', down: true, loggable: true };
    if (BROKEN.has(code))
      return { message: `the connection to ${title} broke`, retry: 'reads', down: true, loggable: true };
    at = at instanceof AggregateError && at.errors.length > 0 ? at.errors[0] : at.cause;
  }
  return undefined;
}

/** What a status of HTTP means. Undefined: the request was rejected, which a retry would not change. `retryAfter`: seconds, if the answer says it. */
export function failureOfStatus(title: string, status: number, retryAfter?: number): Failure | undefined {
  if (status === 401) return { message: `${title} rejected the key of the gateway` };
  if (status === 403) return { message: `${title} does not allow this to the key of the gateway` };
  if (status === 404) return { message: `${title} has no such collection` };
  if (status === 413) return { code: 'payload_too_large', message: `this is too large for one request to ${title}` };
  if (status === 429)
    return {
      code: 'rate_limited',
      message: `${title} accepts no more requests now`,
      retry: 'safe',
      ...(retryAfter && { retryAfter }),
    };
  if (status === 408 || status >= 500) return { message: `${title} failed`, retry: 'reads', down: true };
  return undefined;
}
