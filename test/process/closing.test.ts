import { expect, test } from 'vitest';
import { createClosing } from '../../src/closing.ts';
import { recordingLog } from '../support/subject.ts';

test('parts are closed one after the other, last opened first', async () => {
  const closing = createClosing(recordingLog());
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
  const closing = createClosing(log);
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
