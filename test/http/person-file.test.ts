import { EventEmitter } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Call, type ExportPart, type Memory, OmpError, type Provider } from '#contract';
import { ANONYMOUS, OPEN } from '../../src/core/grants.ts';
import { eventually } from '../support/eventually.ts';
import { APP_LIMITS } from '../support/gateway.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { knownCallers } from '../support/known-callers.ts';
import { serverForTest } from '../support/server.ts';
import { openSubject } from '../support/subject.ts';

const memory = (n: number, content: string): Memory => ({
  ...{ id: `mem_${n}`, content, user_id: 'u', created_at: NOW, updated_at: NOW, scope: null, tags: [], source: null },
  ...{ confidence: null, valid_from: null, valid_to: null, supersedes: [], embedding_model: null, status: null },
  extensions: {},
});
const NOW = '2026-03-02T08:00:00.000Z';

/** A store whose export has so many pages of 16 memories of 8 KB. `before` runs before each. */
function paged(pages: number, before: (page: number, call: Call) => unknown = () => {}) {
  const asked = { pages: 0 };
  const alter = (provider: Provider): Provider => ({
    ...provider,
    async export({ after = '0' }, call): Promise<ExportPart> {
      const page = Number(after);
      asked.pages++;
      await before(page, call);
      const items = Array.from({ length: 16 }, (_, i) => ({
        ...{ memory: memory(page * 16 + i, 'x'.repeat(8_000)), vector: null },
        ...{ version: 1, versions: [], versions_left_out: 0 },
      }));
      return { items, next: page + 1 < pages ? String(page + 1) : undefined };
    },
  });
  return { asked, alter };
}

const typeOf = (line: string) => JSON.parse(line).type;
const types = (text: string): string[] => text.split('\n').slice(0, -1).map(typeOf);

describe('[Decision 61] a file is sent while it is read', () => {
  it('one page at a time, as the client takes it: 20,000 memories are never in memory at once', async () => {
    const { asked, alter } = paged(1_250);
    const subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword', alter });
    onTestFinished(subject.close);
    const { body } = await subject.app.request('/users/u/file', {}, {});
    let taken = 0;
    let lines = 0;
    let ahead = 0;
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      ahead = Math.max(ahead, asked.pages - taken);
      if (taken < 1_250) taken++;
      lines += new TextDecoder().decode(chunk).split('\n').length - 1;
    }
    expect(ahead).toBe(1);
    expect(asked.pages).toBe(1_250);
    // The first line, the audit entry of the file itself, and the last line.
    expect(lines).toBe(20_000 + 3);
  });

  it('of a store without an export, page after page of its list, each after the place of the last memory and nothing else of it', async () => {
    const places: unknown[] = [];
    const alter = (provider: Provider): Provider => ({
      ...provider,
      export: undefined,
      async list({ after }) {
        places.push(after);
        return after ? [] : [memory(0, 'x')];
      },
    });
    const subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword', alter });
    onTestFinished(subject.close);
    const response = await subject.app.request('/users/u/file', {}, {});
    expect(types(await response.text())).toContain('memory');
    expect(places).toEqual([undefined, { created_at: NOW, id: 'mem_0' }]);
  });

  it('and not any more once the client has left', async () => {
    let left = false;
    const { asked, alter } = paged(1_250, async (page, call) => {
      if (page < 3) return;
      await new Promise<void>((resolve) => call.onAbort(resolve));
      left = true;
    });
    const { url } = await serverForTest({ alter });
    const leaving = new AbortController();
    const { body } = await fetch(`${url}/users/u/file`, { signal: leaving.signal });
    await body?.getReader().read();
    await eventually(() => expect(asked.pages).toBe(4));
    expect(left).toBe(false);
    leaving.abort();
    await eventually(() => expect(left).toBe(true));
    expect(asked.pages).toBe(4);
  });

  it('without a deadline while the client takes pages, however slowly; one that takes none is disconnected', async () => {
    const deadlines = holdTimers(APP_LIMITS.request_timeout_ms);
    const { alter } = paged(10);
    const subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword', alter });
    onTestFinished(subject.close);
    // The response of a client that always has something left to read.
    const outgoing = Object.assign(new EventEmitter(), { writableLength: 100_000, destroyed: 0, destroy: () => {} });
    outgoing.destroy = () => outgoing.destroyed++;
    const { body } = await subject.app.request('/users/u/file', {}, { outgoing } as never);
    const reader = (body as ReadableStream).getReader();
    for (let page = 0; page < 10; page++) {
      await reader.read();
      deadlines.pass();
    }
    expect(outgoing.destroyed).toBe(0);
    deadlines.pass();
    deadlines.pass();
    expect(outgoing.destroyed).toBe(1);
    await reader.cancel();
    outgoing.emit('close');
  });

  it('many files at once leave the turns of the event loop to other requests: one page in each', async () => {
    let turn = 0;
    let counting = true;
    const count = () => {
      turn++;
      if (counting) setImmediate(count);
    };
    const inTurn = new Map<number, number>();
    const { alter } = paged(5, () => inTurn.set(turn, (inTurn.get(turn) ?? 0) + 1));
    const subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword', alter });
    onTestFinished(subject.close);
    count();
    const files = Array.from({ length: 20 }, async () => (await subject.app.request('/users/u/file', {}, {})).text());
    await Promise.all(files);
    counting = false;
    expect([...inTurn.values()].reduce((sum, pages) => sum + pages, 0)).toBe(100);
    expect(Math.max(...inTurn.values())).toBeLessThanOrEqual(2);
  });

  it('many files of one caller are read one page after another, beside those of another caller', async () => {
    const reading = new Map<string, number>();
    const most = { ofOne: 0, ofAll: 0 };
    const { asked, alter } = paged(5, async (_, { caller: { id } }) => {
      reading.set(id, (reading.get(id) ?? 0) + 1);
      most.ofOne = Math.max(most.ofOne, ...reading.values());
      most.ofAll = Math.max(
        most.ofAll,
        [...reading.values()].reduce((sum, one) => sum + one),
      );
      await new Promise((resolve) => setTimeout(resolve, 1));
      reading.set(id, (reading.get(id) ?? 0) - 1);
    });
    const callers = knownCallers();
    const [one, other] = [callers.admit(), callers.admit()];
    const { url } = await serverForTest({ alter, authenticator: callers.authenticator });
    const download = async (headers: Record<string, string>) =>
      (await fetch(`${url}/users/u/file`, { headers })).text();
    await Promise.all([one, one, one, one, one, one, other, other, other, other, other, other].map(download));
    expect(asked.pages).toBe(60);
    expect(most).toEqual({ ofOne: 1, ofAll: 2 });
  });

  it('each read has the deadline of a request, and the file says what it lacks then', async () => {
    const { alter } = paged(3, (page, call) => page === 1 && new Promise<void>((resolve) => call.onAbort(resolve)));
    const { client } = await serverForTest({ alter, request_timeout_ms: 500 });
    const { text } = await client.ask('/users/u/file');
    expect(types(text)).toEqual(['person', ...Array(16).fill('memory'), 'missing', 'audit', 'end']);
  });

  it('and not to a key that was revoked meanwhile: the connection breaks, before the last line', async () => {
    let revoked = false;
    const { alter } = paged(1_250, (page) => {
      if (page === 2) revoked = true;
    });
    const authenticate = async () => {
      if (revoked) throw new OmpError('unauthorized', 'revoked');
      return { ...ANONYMOUS, ...(await OPEN.authenticate(undefined, {} as Call)) };
    };
    const { url } = await serverForTest({ alter, authenticator: { authenticate } });
    const response = await fetch(`${url}/users/u/file`);
    await expect(response.text()).rejects.toThrow('terminated');
  });

  it('a failure that nobody foresaw breaks it too, and is logged', async () => {
    const { alter } = paged(1_250);
    const { url, lines } = await serverForTest({
      alter: (provider) => {
        const { audit, ...rest } = alter(provider);
        const read = async () =>
          [
            {
              get user_id(): string {
                throw new TypeError('a mistake');
              },
            },
          ] as never;
        return { ...rest, audit: { ...(audit as Required<Provider>['audit']), read } };
      },
    });
    const response = await fetch(`${url}/users/u/file`);
    await expect(response.text()).rejects.toThrow('terminated');
    expect(lines.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual(['request failed']);
  });
});
