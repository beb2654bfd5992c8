import { expect, test } from 'vitest';
import { openParts } from '../../src/shutdown.ts';
import { recordingLog } from '../support/subject.ts';

test('parts are closed one after the other, last opened first', async () => {
  const closing = openParts(recordingLog());
  const events: string[] = [];
  for (const part of ['provider', 'listener']) {
    closing.add(part, async () => {
      events.push(`${part} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`${part} is closed`);
    });
  }
  await closing.close();
  expect(events).toEqual(['listener begins', 'listener is closed', 'provider begins', 'provider is closed']);
  await closing.close();
  expect(events).toHaveLength(4);
});

test('a part that fails and one that never ends do not keep the others open, and are named', async () => {
  const log = recordingLog();
  const closing = openParts(log);
  let closed = false;
  closing.add('provider', async () => {
    closed = true;
  });
  closing.add('trail', () => new Promise(() => {}), 1);
  closing.add('limits', () => Promise.reject(new Error('gone')));
  await expect(closing.close()).rejects.toThrow('not closed: limits, trail');
  expect(closed).toBe(true);
  expect(log.lines).toMatchObject([
    { level: 'error', fields: { part: 'limits', err: { message: 'gone' } } },
    { level: 'error', fields: { part: 'trail', err: { message: 'not closed within 1 ms' } } },
  ]);
});

test('all parts together get a limited time; what is left is told to close all the same', async () => {
  const log = recordingLog();
  const closing = openParts(log);
  const told: string[] = [];
  const hanging = (part: string) =>
    closing.add(part, () => {
      told.push(part);
      return new Promise(() => {});
    });
  for (const part of ['provider', 'limits', 'trail']) hanging(part);
  await expect(closing.close(1)).rejects.toThrow('not closed: trail, limits, provider');
  expect(told).toEqual(['trail', 'limits', 'provider']);
  expect(log.lines.map(({ fields }) => fields)).toMatchObject([
    { part: 'trail' },
    { part: 'limits' },
    { part: 'provider' },
  ]);
});

test('a part that is opened is closed with the others, and one that cannot be opened has nothing to close', async () => {
  const log = recordingLog();
  const closing = openParts(log, new AbortController().signal);
  const events: string[] = [];
  const part = { name: 'embedder', close: async () => void events.push('embedder is closed') };
  expect(await closing.open('embedder', Promise.resolve(part))).toBe(part);
  await expect(closing.open('provider', Promise.reject<typeof part>(new Error('refused')))).rejects.toThrow('refused');
  await closing.close();
  expect(events).toEqual(['embedder is closed']);
  expect(log.lines).toEqual([]);
});

test('a start that is stopped waits for nothing, and what opens a moment later is closed too', async () => {
  const stop = new AbortController();
  const closing = openParts(recordingLog(), stop.signal);
  const events: string[] = [];
  const part = { close: async () => void events.push('closed') };
  let open = (_: typeof part) => {};
  const opening = closing.open(
    'provider',
    new Promise<typeof part>((resolve) => {
      open = resolve;
    }),
  );
  stop.abort();
  await expect(opening).rejects.toBe(stop.signal.reason);
  const closed = closing.close();
  open(part);
  await closed;
  expect(events).toEqual(['closed']);
  // Nothing begins any more.
  await expect(closing.open('limits', Promise.resolve(part))).rejects.toBe(stop.signal.reason);
  await closing.close();
  expect(events).toEqual(['closed', 'closed']);
});

test('what never opens is not waited for, and does not make the stop a failure', async () => {
  const stop = new AbortController();
  const log = recordingLog();
  const closing = openParts(log, stop.signal);
  const opening = closing.open('provider', new Promise<{ close(): Promise<void> }>(() => {}));
  stop.abort();
  await expect(opening).rejects.toBe(stop.signal.reason);
  await closing.close();
  expect(log.lines).toEqual([]);
});
