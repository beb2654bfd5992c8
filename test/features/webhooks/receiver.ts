import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { onTestFinished } from 'vitest';

/** A request as a receiver got it. */
export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly id: string;
  readonly type: string;
  readonly data: { readonly id: string | null; readonly user_id: string; readonly action: string };
}

/** A status, or what writes the response itself. */
type Reaction = number | ((response: ServerResponse) => void);

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** What it answers from now on. */
  react(to: (request: Received, response: ServerResponse) => Reaction | Promise<Reaction>): void;
  /** Whether the official library accepts the request. */
  accepts(secret: string, request?: Received): boolean;
}

/** A receiver on loopback, which ends with the test. It answers 204 until it is told otherwise. */
export async function openReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let reaction: Parameters<Receiver['react']>[0] = () => 204;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const { type, data } = JSON.parse(body);
    const one = { headers: request.headers, body, id: String(request.headers['webhook-id']), type, data };
    received.push(one);
    const answer = await reaction(one, response);
    if (typeof answer === 'function') answer(response);
    else response.writeHead(answer).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    react(to) {
      reaction = to;
    },
    accepts(secret, request = received.at(-1)) {
      try {
        new Webhook(secret).verify(request?.body ?? '', request?.headers as Record<string, string>);
        return true;
      } catch {
        return false;
      }
    },
  };
}
