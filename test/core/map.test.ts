import { describe, expect, it } from 'vitest';
import type { Memory, Position } from '#contract';
import { drawMap } from '../../src/core/map.ts';
import { project } from '../../src/core/projection.ts';
import { call } from '../support/requests.ts';

/** More than a plane has: their principal components alone would not separate them. */
const AXES = 12;

/** Vectors around some axes, each near one of them, and the axis of each. */
function clusters(count: number, size: number) {
  const components = new Float32Array(count * size);
  for (let i = 0; i < components.length; i++) components[i] = 0.3 * Math.sin(7 * i * i + i);
  const axes = Array.from({ length: count }, (_, one) => one % AXES);
  for (const [one, axis] of axes.entries()) components[one * size + axis] = 3;
  return { vectors: { count, components }, axes };
}

describe('a projection', () => {
  it('[Decision 42] puts vectors near their neighbours, and says how far it did', () => {
    const { vectors, axes } = clusters(240, 24);
    const { x, y, among_10, among_50 } = project(vectors);
    const alike = axes.map((axis, one) => {
      const distances = axes.map((other, to) => ({
        other,
        far: Math.hypot((x[one] as number) - (x[to] as number), (y[one] as number) - (y[to] as number)),
      }));
      const nearest = distances.sort((a, b) => a.far - b.far).slice(1, 11);
      return nearest.filter(({ other }) => other === axis).length;
    });
    expect(alike.reduce((sum, count) => sum + count, 0) / alike.length).toBeGreaterThan(9.5);
    expect(among_10).toBeGreaterThan(0.5);
    expect(among_50).toBeGreaterThan(0.95);
    expect(among_50).toBeLessThanOrEqual(1);
    expect(Math.max(...x, ...y)).toBeCloseTo(1);
    expect(Math.min(...x, ...y)).toBeCloseTo(0);
  });

  it('[Decision 42] is the same each time, whatever the length of the vectors', () => {
    const { vectors } = clusters(40, 24);
    const doubled = { ...vectors, components: vectors.components.map((component) => 2 * component) };
    expect(project(doubled)).toEqual(project(vectors));
  });

  it.each([2, 3, 12])('[Decision 42] of %d equal vectors gives each a place', (count) => {
    const { x, y } = project({ count, components: new Float32Array(5 * count).fill(0.5) });
    expect([...x, ...y].every((part) => Math.abs(part - 0.5) < 0.5001)).toBe(true);
    expect(new Set(x).size).toBe(count);
  });
});

describe('a map', () => {
  const memory = (n: number, content: string): Memory => ({
    ...{ id: `m${n}`, content, user_id: 'u', created_at: '2026-01-01T00:00:00.000Z', updated_at: '', scope: null },
    ...{ tags: [], source: null, confidence: null, valid_from: null, valid_to: null, supersedes: [] },
    ...{ embedding_model: null, status: null, extensions: {} },
  });
  /** A user with `count` memories. Records what was read. */
  const sourceOf = (count: number, { content = 'x', size = 4 } = {}) => {
    const read = { memories: 0, vectors: 0 };
    const numberOf = (id: string) => Number(id.slice(1));
    return {
      read,
      async page(after: Position | undefined, limit: number) {
        const start = after ? numberOf(after.id) + 1 : 0;
        const items = Array.from({ length: Math.min(limit, count - start) }, (_, i) => memory(start + i, content));
        read.memories += items.length;
        return { items, more: start + items.length < count };
      },
      async vectorsOf(ids: readonly string[]) {
        read.vectors += ids.length;
        // Every fifth has none, and every fifth one of zeros.
        const have = ids.filter((id) => numberOf(id) % 5 !== 0);
        return new Map(have.map((id) => [id, new Float32Array(size).fill(numberOf(id) % 5 === 1 ? 0 : numberOf(id))]));
      },
    };
  };

  it('[Decision 42] has the newest 2,000 memories at most', async () => {
    const source = sourceOf(2_001);
    const { items, more, without_vector } = await drawMap(source, call);
    expect(source.read).toEqual({ memories: 2_000, vectors: 2_000 });
    expect([items.length, items.at(-1)?.id, more, without_vector]).toEqual([1_200, 'm1999', true, 800]);
    expect((await drawMap(sourceOf(2_000), call)).more).toBe(false);
  });

  it('[Decision 42] ends after 16 MiB of memories', async () => {
    const source = sourceOf(2_000, { content: '😀'.repeat(25_000) });
    const { more, items } = await drawMap(source, call);
    expect([source.read.memories, more]).toEqual([500, true]);
    // No half of a character.
    expect(items[0]?.text).toBe('😀'.repeat(100));
    expect((await drawMap(sourceOf(3, { content: `x${'😀'.repeat(200)}` }), call)).items[0]?.text).toBe(
      `x${'😀'.repeat(99)}`,
    );
  });

  it('[Decision 42] has fewer long vectors', async () => {
    // 180 of the 300 have a vector.
    const { more, items } = await drawMap(sourceOf(300, { size: 96_000 }), call);
    expect([items.length, more]).toEqual([178, true]);
  });

  it.each([0, 3])('[Decision 42] of %d memories needs no plane', async (count) => {
    const { items, among_10 } = await drawMap(sourceOf(count), call);
    expect(items.map(({ id, x, y }) => ({ id, x, y }))).toEqual(count === 0 ? [] : [{ id: 'm2', x: 0.5, y: 0.5 }]);
    expect(among_10).toBe(1);
  });
});
