import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Reply } from '../support/client.ts';
import { exchange } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

describe('headers of answers', () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.close());
  const everyKind = async (): Promise<Reply[]> => {
    const { client } = server;
    const user_id = freshUser();
    const { id } = await client.add({ content: 'x', user_id });
    return [
      await client.ask(client.byId(id)),
      await client.ask('/memories', { user_id }),
      await client.ask('/memories/search', { user_id, q: 'x' }),
      await client.tell('POST', '/context', { user_id, query: 'x' }),
      await client.tell('DELETE', client.byId(id)),
      await client.ask(client.byId(id)),
      await client.tell('POST', '/memories', {}),
      await client.ask('/capabilities'),
      await client.ask('/healthz'),
      await client.ask('/nowhere'),
      await exchange(server.port, 'GARBAGE\r\n\r\n'),
      await exchange(server.port, 'GET / HTTP/1.1\r\n\r\n'),
    ];
  };

  it('[Decision 22] no answer may be kept by a cache on the way', async () => {
    for (const { headers, text } of await everyKind()) expect(headers.get('cache-control'), text).toBe('no-store');
  });

  it('[Decision 16] no answer tells what the gateway is made of', async () => {
    for (const { headers, text } of [...(await everyKind()), await server.client.ask('/docs')]) {
      const names = [...headers.keys()];
      expect(
        names.filter((name) => /^(server|x-powered-by|via)$/.test(name)),
        text,
      ).toEqual([]);
      expect(JSON.stringify([...headers.values()])).not.toMatch(/hono|node|express/i);
    }
  });

  it('[Decision 22] pages allow no inline script, no frame, nothing from elsewhere', async () => {
    for (const path of ['/docs', '/docs/start.js', '/docs/swagger-ui.css', '/docs/nothing']) {
      const { headers } = await server.client.ask(path);
      const policy = new Map(
        (headers.get('content-security-policy') ?? '').split('; ').map((directive) => {
          const [name = '', ...values] = directive.split(' ');
          return [name, values.join(' ')];
        }),
      );
      expect(policy.get('default-src'), path).toBe("'none'");
      expect(policy.get('script-src')).toBe("'self'");
      expect(policy.get('frame-ancestors')).toBe("'none'");
      expect(policy.get('base-uri')).toBe("'none'");
      expect(policy.get('form-action')).toBe("'none'");
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('permissions-policy')).toContain('geolocation=()');
      // Insisting on TLS is for whoever terminates it.
      expect(headers.get('strict-transport-security')).toBeNull();
    }
  });
});
