import { Agent, type IncomingMessage, request } from 'node:http';
import { onTestFinished } from 'vitest';
import { type Client, clientOf } from './client.ts';

/** A client with a connection of its own, which it keeps. Unlike `fetch` it never sends anything a second time. */
export function keepingClient(url: string): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return clientOf(async (path, { method = 'GET', headers, body } = {}) => {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const fields = Object.fromEntries(new Headers(headers));
      const length = typeof body === 'string' ? { 'content-length': Buffer.byteLength(body) } : {};
      const asked = request(url + path, { method, agent, headers: { ...fields, ...length } }, resolve);
      asked.on('error', reject).end(body);
    });
    const text = Buffer.concat(await response.toArray());
    const answered = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
      values.map((value): [string, string] => [name, value]),
    );
    const status = response.statusCode ?? 0;
    return new Response(status === 204 ? null : text, { status, headers: answered });
  });
}
