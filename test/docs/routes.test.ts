import { describe, expect, it } from 'vitest';
import { OPEN } from '../../src/core/grants.ts';
import { createApp } from '../../src/http/app.ts';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import { openMemory } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { APP_LIMITS, gateOn, recordingLog } from '../support/subject.ts';
import { exists, read } from './markdown.ts';

const SECTION = /^## Bounds of each route$[\s\S]*?(?=^## |$(?![\s\S]))/m;
const rows = (SECTION.exec(read('docs/security/bounds.md'))?.[0] ?? '')
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.slice(2, -2).split(' | '));
const quoted = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);

/** Every route of a gateway with everything switched on. */
async function allRoutes(): Promise<string[]> {
  const log = recordingLog();
  const { gate } = gateOn(storeOf(await openMemory()), log);
  const app = createApp({
    ...{ gate, log, authenticator: OPEN, ...APP_LIMITS, console: 'on', mcp: { enabled: 'on' } },
    ...{ compat: { interface: 'mem0', infer: 'reject' }, tokens: { issuer: 'https://login', audience: 'https://own' } },
  });
  return app.routes.filter(({ method }) => method !== 'ALL').map(({ method, path }) => `${method} ${path}`);
}

describe('the table of bounds in docs/security/bounds.md', () => {
  it('[Decision 29] has one row for every route', async () => {
    const listed = rows.flatMap(([routes]) => quoted(routes));
    expect([...listed].sort()).toEqual([...new Set(await allRoutes())].sort());
  });

  it('[Decision 29] has one row for every operation of the OpenAPI document', () => {
    const listed = rows.flatMap(([routes]) => quoted(routes)).map((route) => route.replace(/:(\w+)/g, '{$1}'));
    const described = Object.entries(openApiDocument().paths ?? {}).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(described.filter((route) => !listed.includes(route))).toEqual([]);
  });

  it('[Decision 29] states each bound and names tests that exist', () => {
    for (const cells of rows) {
      expect(cells, cells[0]).toHaveLength(6);
      expect(cells.filter((cell) => cell.trim() === '')).toEqual([]);
      const tests = quoted(cells[5]);
      expect(tests.length, cells[0]).toBeGreaterThan(0);
      expect(tests.filter((file) => !exists(file))).toEqual([]);
    }
  });
});
