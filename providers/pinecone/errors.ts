import { OmpError, providerError } from '#contract';
import { Failure, type FailureKind } from './failure.ts';

export const PROVIDER = 'pinecone';

/** What a client is told, by status or else by kind. What the service and the system said stays in the log. */
const BY_STATUS: Readonly<Record<number, string>> = {
  401: 'Pinecone refused the API key of the gateway',
  402: 'Pinecone asks for a payment before it serves the gateway again',
  403: 'Pinecone does not allow this to the gateway, or a quota of its account is used up',
  404: 'Pinecone does not know what the gateway asked for',
  408: 'Pinecone took too long',
  503: 'Pinecone is not available at the moment',
};
const BY_KIND: Readonly<Record<FailureKind, string>> = {
  unreachable: 'Pinecone cannot be reached',
  insecure: 'no secure connection to Pinecone could be made',
  lost: 'the connection to Pinecone was lost',
  late: 'Pinecone took too long',
  unreadable: 'Pinecone sent an answer that cannot be understood',
  busy: 'Pinecone takes no more requests at the moment',
  failed: 'Pinecone failed',
  refused: 'Pinecone did not accept a request of the gateway',
};

export function toOmpError(cause: unknown): OmpError {
  if (cause instanceof OmpError) return cause;
  if (!(cause instanceof Failure)) return providerError(PROVIDER, 'the request to Pinecone could not be made', cause);
  const { kind, status = 0, retryAfter } = cause;
  const message = BY_STATUS[status] ?? BY_KIND[kind];
  if (kind !== 'busy') {
    // What was refused was answered; and by now it was repeated as often as that may help.
    return new OmpError('provider_error', message, { provider: PROVIDER, cause, down: kind !== 'refused' });
  }
  return new OmpError('rate_limited', message, {
    provider: PROVIDER,
    cause,
    ...(retryAfter !== undefined && { retryAfter }),
  });
}
