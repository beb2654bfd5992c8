import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { invalidRequest, type Log, type OmpError } from '#contract';
import { newRequestId } from './call.ts';
import { ERRORS, toEnvelope } from './error-envelope.ts';
import { ANSWER_HEADERS } from './security-headers.ts';

/** How long a refused sender may go on before the connection is cut: long enough to read the answer instead of a reset. */
const LINGER_MS = 2_000;

/** An error for which there is no `Context`: as status, headers and body. */
export function plainResponse(error: OmpError, requestId: string) {
  return {
    status: ERRORS[error.code].status,
    headers: { 'content-type': 'application/json', 'x-request-id': requestId, ...ANSWER_HEADERS },
    body: JSON.stringify(toEnvelope(error, requestId)),
  };
}

/** What is in work on a connection: the answers that are still open, and the one begun last. */
export interface InWork {
  readonly open: readonly ServerResponse[];
  readonly last: ServerResponse | undefined;
}

/**
 * Ends connections on which something came that reaches no app: the envelope is written after the answers to what came
 * before, and not where the message it belongs to was answered already. `reason` is for the log.
 */
export function refuser(inWork: (socket: Duplex) => InWork, log: Log) {
  const refused = new WeakSet<Duplex>();
  return (socket: Duplex, error: OmpError, reason: string): void => {
    // Whatever else arrives is told again.
    if (refused.has(socket)) return;
    refused.add(socket);
    const { open, last } = inWork(socket);
    // The error is in its body; its head was fine.
    const own = last?.req.complete === false ? last : undefined;
    if (own?.headersSent) return void socket.destroy();
    const before = open.filter((response) => response !== own);
    let left = before.length;
    const answer = () => {
      if (left-- > 0) return;
      if (!socket.writable) return void socket.destroy();
      const requestId = newRequestId();
      log.info({ request_id: requestId, reason }, 'malformed request');
      end(socket, plainResponse(error, requestId));
    };
    for (const response of before) response.once('close', answer);
    answer();
  };
}

function end(socket: Duplex, { status, headers, body }: ReturnType<typeof plainResponse>): void {
  const lines = Object.entries({ ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
  );
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}

const WHY: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'the request line and headers are too large',
  ERR_HTTP_REQUEST_TIMEOUT: 'the request did not arrive in time',
};

/** What the HTTP parser found, by form or by being too slow, in words for the client. */
export const parserError = (code: string): OmpError => invalidRequest(WHY[code] ?? 'malformed HTTP request');
