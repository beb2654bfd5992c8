import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openHttpFetch } from '../../src/embedding/openai.ts';

describe('the answer of a service', () => {
  const server = createServer((request, response) => {
    // The length is not told.
    for (let i = 0; i < Number(request.url?.slice(1)); i++) response.write('a'.repeat(1_000));
    response.end();
  });
  beforeAll(() => new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening)));
  afterAll(() => new Promise((closed) => server.close(closed)));

  it('[Decision 29] is read as far as a bound, and no further', async () => {
    const { fetch, close } = openHttpFetch(10_000);
    const ask = (thousands: number) => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/${thousands}`);
    expect(await (await ask(10)).text()).toHaveLength(10_000);
    await expect(ask(11)).rejects.toThrow('longer than 10000 bytes');
    expect(await (await ask(1)).text()).toHaveLength(1_000);
    close();
  });
});
