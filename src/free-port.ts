import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { cannotListen } from './http/listen.ts';

/**
 * The port, a free one in the place of 0. Rejects unless a server can listen there, which is better known before a
 * database is made than after.
 */
export async function freePort(address: { readonly host: string; readonly port: number }): Promise<number> {
  const server = createServer().listen(address.port, address.host);
  await once(server, 'listening').catch((error: Error) => {
    throw cannotListen(error, address);
  });
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
