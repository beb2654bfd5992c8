import { describe, expect, it } from 'vitest';
import { withWaiting } from '../../src/embedding/with-waiting.ts';
import { callOf, gate, observedEmbedder } from './observed-embedder.ts';

describe('a call that waits for an embedding', () => {
  it('says so for as long as it does, also when it waits for several', async () => {
    const gates = { a: gate(), bb: gate() };
    const { embedder } = observedEmbedder(({ texts: [text] }) => gates[text as 'a' | 'bb'].opened);
    const { embed } = withWaiting(embedder, 'openai');
    const waiting = { on: undefined };
    const other = { on: undefined };
    const call = { ...callOf(), waiting };
    const first = embed(['a'], 'query', call);
    expect(waiting.on).toBe('openai');
    const second = embed(['bb'], 'query', call);
    gates.a.open();
    await first;
    expect(waiting.on).toBe('openai');
    gates.bb.open();
    await second;
    expect(waiting.on).toBeUndefined();
    expect(other.on).toBeUndefined();
  });

  it('says so no more when that has failed', async () => {
    const { embedder } = observedEmbedder(() => Promise.reject(new Error('down')));
    const { embed } = withWaiting(embedder, 'openai');
    const waiting = { on: undefined };
    await expect(embed(['a'], 'query', { ...callOf(), waiting })).rejects.toThrow('down');
    expect(waiting.on).toBeUndefined();
    await expect(embed(['a'], 'query', callOf())).rejects.toThrow('down');
  });
});
