import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import type { z } from 'zod';
import type { Store } from '../../src/core/with-embedder.ts';
import { overHttp } from '../../src/mcp/over-http.ts';
import { VERB_TABLE } from '../../src/verbs/index.ts';

it.each(['', '.', '..'])('[Decision 45] a tool over HTTP asks for nothing else than memories: id "%s"', async (id) => {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.end('{}');
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const memories = overHttp({ url, key: undefined, user_id: 'ana', timeout_ms: 60_000 });
  const { signal } = new AbortController();
  for (const verb of [VERB_TABLE.get, VERB_TABLE.update, VERB_TABLE.delete]) {
    await expect(
      memories.run<z.ZodObject, unknown, keyof Store>(verb, { id, patch: {} }, signal),
    ).rejects.toMatchObject({ code: 'not_found' });
  }
  expect(asked).toEqual([]);
});
