import { describe, expect, it } from 'vitest';
import { createIds, createNamespaces } from '../../providers/pinecone/gateway-index/ids.ts';

const ids = createIds(new Uint8Array(32));
const parts = Array.from({ length: 2_000 }, (_, i) => ids.userPart(`user-${i}`));

describe('namespaces', () => {
  it.each(['single', 'sharded', 'per-user'] as const)(
    'of the layout "%s" keep the record of the index in the one that is configured',
    (layout) => expect(createNamespaces(layout, 'memories').base).toBe('memories'),
  );

  it('of the layout "single" are one', () => {
    const { of } = createNamespaces('single', 'memories');
    expect(new Set(parts.map(of))).toEqual(new Set(['memories']));
  });

  it('of the layout "sharded" are 32, by the first character of the user part', () => {
    const { of } = createNamespaces('sharded', 'memories');
    const used = new Set(parts.map(of));
    expect(used.size).toBe(32);
    expect(used).toEqual(new Set([...'0123456789abcdefghijklmnopqrstuv'].map((first) => `memories-${first}`)));
    expect(of('g0')).toBe('memories-g');
  });

  it('of the layout "per-user" are one a user', () => {
    const { of } = createNamespaces('per-user', 'memories');
    expect(parts.map(of)).toEqual(parts.map((part) => `memories-${part}`));
  });
});
