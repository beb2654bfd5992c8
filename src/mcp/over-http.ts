import { OmpError } from '#contract';
import { ApiError, InvalidResponseError, MemoryClient } from '../../clients/typescript/src/index.ts';
import { createSend, type Request } from '../../clients/typescript/src/transport.ts';
import type { Verb } from '../verbs/verb.ts';
import type { Supported } from './server.ts';
import { forUser, type UserMemories } from './tools.ts';

interface RemoteOptions {
  /** Address of a gateway, or of another service that implements the protocol. */
  readonly url: string;
  readonly key: string | undefined;
  readonly user_id: string;
  /** Deadline of one request, in milliseconds. */
  readonly timeout_ms: number;
}

/** The memories of a user behind an HTTP address. */
export function overHttp(options: RemoteOptions): UserMemories {
  const { url, user_id } = options;
  const send = createSend(clientOptions(options));
  return {
    async run(verb, input, signal) {
      const request = requestOf(verb, forUser(verb, input, user_id) as Fields);
      try {
        return (await send(request, { signal })).data as never;
      } catch (error) {
        throw toOmpError(error, url.replace(/\/$/, ''));
      }
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** The request that `src/http/verb-routes.ts` turns into this input. */
function requestOf(
  { method, path, headers, body }: Pick<Verb, 'method' | 'path' | 'headers' | 'body'>,
  { id, user_id, ...fields }: Fields,
): Request {
  const hasId = path.includes('{id}');
  // No memory has these ids, which would address another resource.
  if (hasId && /^\.{0,2}$/.test(String(id))) throw new OmpError('not_found', 'no memory has this id');
  const inHeader = headers?.user_id !== undefined;
  const others = inHeader ? fields : { ...fields, user_id };
  return {
    method,
    path: path
      .slice(1)
      .split('/')
      .map((segment) => (segment === '{id}' ? String(id) : segment)),
    ...bodyAndQuery(body, others),
    // Header values are Latin-1; the gateway reads them as UTF-8.
    headers: inHeader ? { 'x-user-id': Buffer.from(String(user_id)).toString('latin1') } : {},
    repeatable: false,
  };
}

function bodyAndQuery(body: Verb['body'], fields: Fields): Pick<Request, 'body' | 'query'> {
  if (!body) return { query: fields };
  if (body.field === undefined) return { body: fields };
  const { [body.field]: content, ...query } = fields;
  return { body: content, query };
}

/** Names of the verbs that a gateway supports, and its features. Rejects if it does not say. */
export async function remoteCapabilities(options: RemoteOptions): Promise<Supported> {
  const { verbs, features } = await new MemoryClient(clientOptions(options)).capabilities();
  if (!Array.isArray(verbs)) throw new Error('the answer of /capabilities has no verbs');
  return { verbs, features: { ...features } };
}

/** The agent decides whether to call a tool again, so nothing is retried. */
const clientOptions = ({ url, key, timeout_ms }: RemoteOptions) => ({
  url,
  ...(key !== undefined && { key }),
  timeout: timeout_ms,
  totalTimeout: timeout_ms,
  retries: 0,
  onWarning: () => {},
});

function toOmpError(error: unknown, url: string): OmpError {
  if (error instanceof ApiError) return new OmpError(error.code, error.message);
  // An argument that the client rejects, such as a user id with a space at its end.
  if (error instanceof TypeError) return new OmpError('invalid_request', error.message);
  if (error instanceof InvalidResponseError) {
    return new OmpError('provider_error', `${url} answered ${error.status}; is it a gateway?`);
  }
  return new OmpError('provider_error', `${url} does not answer; is the gateway running?`, { cause: error });
}
