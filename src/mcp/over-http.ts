import { OmpError } from '#contract';
import { ApiError, InvalidResponseError, MemoryClient } from '../../clients/typescript/src/index.ts';
import { forUser, type UserMemories } from './memories.ts';

export interface RemoteOptions {
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
  const client = clientOf(options);
  const { memories } = client;
  /** The request of each verb. The gateway checks the input, not the types of the client. */
  const requests: Readonly<Record<string, (input: never, signal: AbortSignal) => Promise<unknown>>> = {
    add: ({ memory }: { memory: never }, signal) => memories.add(memory, { signal }),
    list: (query, signal) => memories.list(query, { signal }).page(),
    search: (query, signal) => memories.search(query, { signal }),
    get: ({ id }: { id: string }, signal) => memories.get(existing(id), { userId: user_id, signal }),
    update: ({ id, patch }: { id: string; patch: never }, signal) =>
      memories.update(existing(id), patch, { userId: user_id, signal }),
    delete: ({ id }: { id: string }, signal) => memories.delete(existing(id), { userId: user_id, signal }),
    context: (input, signal) => client.context(input, { signal }),
  };
  return {
    async run(verb, input, signal) {
      try {
        return (await requests[verb.name]?.(forUser(verb, input, user_id) as never, signal)) as never;
      } catch (error) {
        throw error instanceof OmpError ? error : toOmpError(error, url.replace(/\/$/, ''));
      }
    },
  };
}

/** No memory has these ids, which would address another resource. */
function existing(id: string): string {
  if (/^\.{0,2}$/.test(id)) throw new OmpError('not_found', 'no memory has this id');
  return id;
}

/** Names of the verbs that a gateway supports. Rejects if it does not say. */
export async function remoteVerbs(options: RemoteOptions): Promise<readonly string[]> {
  const { verbs } = await clientOf(options).capabilities();
  if (!Array.isArray(verbs)) throw new Error('the answer of /capabilities has no verbs');
  return verbs;
}

/** The agent decides whether to call a tool again, so nothing is retried. */
const clientOf = ({ url, key, timeout_ms }: RemoteOptions): MemoryClient =>
  new MemoryClient({
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
