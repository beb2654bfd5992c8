import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomNumbers } from '../ranking/random-vectors.ts';
import { clientOf, type Send } from './client.ts';
import { openLedger } from './ledger.ts';
import { openSubject, type Subject } from './subject.ts';
import type { WireMemory, WirePage } from './wire.ts';

let subject: Subject;
beforeEach(async () => {
  vi.spyOn(Math, 'random').mockImplementation(randomNumbers(1));
  subject = await openSubject({ provider: 'memory', options: {}, mode: 'keyword' });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await subject.close();
});

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly init: RequestInit;
  readonly ask: Send;
  /** Of this memory, how often the method was asked before. */
  readonly before: number;
}
/** Answers in place of the gateway; undefined: the gateway does. */
type Fault = (asked: Asked) => Promise<Response | undefined>;

/** A ledger on a gateway that errs. Nothing is given up, so that only the fault counts. */
function ledgerOn(fault: Fault) {
  const ask: Send = async (path, init) => subject.app.request(path, { ...init, signal: null }, {});
  const counts = new Map<string, number>();
  const send: Send = async (path, init = {}) => {
    const method = init.method ?? 'GET';
    const before = counts.get(`${method} ${path}`) ?? 0;
    counts.set(`${method} ${path}`, before + 1);
    return (await fault({ method, path, init, ask, before })) ?? ask(path, init);
  };
  return openLedger(clientOf(send), { impatience: 0 });
}
const down = () =>
  Response.json(
    { error: { code: 'provider_error', message: 'down', type: 'provider_error', provider: 'postgres' } },
    { status: 502 },
  );
const work = async (fault: Fault) => {
  const ledger = ledgerOn(fault);
  for (let i = 0; i < 12; i++) {
    for (let j = 0; j < 25; j++) await ledger.step();
    await ledger.check();
  }
  await ledger.searchOwn(30);
};
const without = (page: WirePage, hidden: ReadonlySet<string>): Response =>
  Response.json({ ...page, items: page.items.filter(({ id }) => !hidden.has(`/memories/${id}`)) });

describe('the ledger of acknowledged writes', () => {
  it('finds nothing wrong with a gateway that is right, whether it acknowledges or not', async () => {
    let n = 0;
    await work(async ({ method, path, init, ask }) => {
      if (method === 'GET' || ++n % 3 !== 0) return undefined;
      // Every other one happens nevertheless.
      if (n % 2 === 0) await ask(path, init);
      return down();
    });
    expect(n).toBeGreaterThan(100);
  });

  const isSearch = (path: string) => path.startsWith('/memories/search');
  const isList = (path: string) => path.startsWith('/memories?');

  const byHalves =
    (acknowledged: boolean): Fault =>
    async ({ method, path, init, ask }) => {
      if (method !== 'PATCH') return undefined;
      const patch = JSON.parse(init.body as string);
      await ask(path, { ...init, body: JSON.stringify({ content: patch.content }) });
      if (!acknowledged) return down();
      return Response.json({ ...((await (await ask(path)).json()) as WireMemory), ...patch });
    };
  /** Nothing is deleted: lists lack the memory, and searches too where the delete is acknowledged. */
  const hiddenOnly = (acknowledged: boolean): Fault => {
    const hidden = new Set<string>();
    return async ({ method, path, init, ask }) => {
      if (method === 'DELETE') {
        hidden.add(path);
        return acknowledged ? new Response(null, { status: 204 }) : down();
      }
      if (acknowledged && isSearch(path)) return Response.json({ results: [] });
      if (!isList(path)) return undefined;
      return without((await (await ask(path, init)).json()) as WirePage, hidden);
    };
  };

  const FAULTS: Readonly<Record<string, () => Fault>> = {
    'an acknowledged update is lost after one that was not acknowledged':
      () =>
      async ({ method, path, init, ask, before }) => {
        if (method !== 'PATCH') return undefined;
        if (before === 0) return down();
        const memory = (await (await ask(path)).json()) as WireMemory;
        return Response.json({ ...memory, ...JSON.parse(init.body as string) });
      },
    'an update that was not acknowledged happens by halves': () => byHalves(false),
    'an acknowledged update happens by halves': () => byHalves(true),
    'the answer to an update is not what it wrote':
      () =>
      async ({ method, path, init, ask }) => {
        if (method !== 'PATCH') return undefined;
        const before = await ask(path);
        await ask(path, init);
        return before;
      },
    'an update that was not acknowledged is undone after it was seen': () => {
      const first = new Map<string, string>();
      return async ({ method, path, init, ask, before }) => {
        if (method === 'PATCH' && before === 0) {
          const { content, tags, 'x-note': note } = (await (await ask(path)).json()) as WireMemory;
          first.set(path, JSON.stringify({ content, tags, 'x-note': note }));
          await ask(path, init);
          return down();
        }
        const undo = method === 'GET' && before === 3 ? first.get(path) : undefined;
        if (undo !== undefined) await ask(path, { ...init, method: 'PATCH', body: undo, headers: JSON_TYPE });
        return undefined;
      };
    },
    'an acknowledged delete is one for lists and searches only': () => hiddenOnly(true),
    'a delete that was not acknowledged is one for lists only': () => hiddenOnly(false),
    'what an update that was not acknowledged wrote is not found by its words': () => {
      const stale = new Set<string>();
      return async ({ method, path, init, ask }) => {
        if (method === 'PATCH') {
          stale.add(path);
          await ask(path, init);
          return down();
        }
        if (!isSearch(path)) return undefined;
        const { results } = (await (await ask(path, init)).json()) as { results: { memory: WireMemory }[] };
        return Response.json({ results: results.filter(({ memory }) => !stale.has(`/memories/${memory.id}`)) });
      };
    },
    'an add that was not acknowledged happens twice': () => {
      const twice = new Map<string, number>();
      return async ({ method, init, ask, path }) => {
        if (method !== 'POST') return undefined;
        const body = init.body as string;
        if (twice.size > 0) return undefined;
        twice.set(body, 1);
        const plain = { ...init, headers: JSON_TYPE };
        await ask(path, plain);
        await ask(path, plain);
        return down();
      };
    },
  };
  const JSON_TYPE = { 'content-type': 'application/json' };

  it.each(Object.entries(FAULTS))('tells when %s', async (_, fault) => {
    await expect(work(fault())).rejects.toThrow(/^(lost|wrong): /);
  });
});
