import { describe, expect, it } from 'vitest';
import { type Page, rememberPages } from '../../providers/pinecone/gateway-index/list-walk.ts';

const page = (past: string, ...ids: string[]): Page => ({ past, ids, next: undefined });

describe('pages that were read lately', () => {
  it('serve a place that begins in them, the latest first, and no other user', () => {
    const pages = rememberPages();
    const [first, second, again] = [page('a', 'b', 'd'), page('d', 'e', 'g'), page('c', 'd', 'e')];
    pages.put('ana', first);
    pages.put('ana', second);
    expect(pages.covering('ana', 'a')).toBe(first);
    expect(pages.covering('ana', 'd')).toBe(second);
    pages.put('ana', again);
    expect(pages.covering('ana', 'd')).toBe(again);
    expect(pages.covering('ana', 'g')).toBe(second);
    // What it has from there on began before it, and nothing of it comes after.
    expect(pages.covering('ana', 'Z')).toBeUndefined();
    expect(pages.covering('ana', 'h')).toBeUndefined();
    expect(pages.covering('bob', 'd')).toBeUndefined();
  });

  it('are not used where the service listed nothing', () => {
    const pages = rememberPages();
    pages.put('ana', page('a'));
    expect(pages.covering('ana', 'a')).toBeUndefined();
  });

  it('are few a user, and the oldest go first', () => {
    const pages = rememberPages();
    for (let i = 10; i < 30; i++) pages.put('ana', page(`${i}`, `${i}x`));
    const kept = Array.from({ length: 20 }, (_, i) => pages.covering('ana', `${i + 10}`)).filter((one) => one);
    expect(kept.map((one) => one?.past)).toEqual(Array.from({ length: 16 }, (_, i) => `${i + 14}`));
  });

  it('are forgotten after five minutes, however busy the user', () => {
    let now = 1;
    const pages = rememberPages({ now: () => now });
    pages.put('ana', page('a', 'b'));
    now += 299_000;
    pages.put('ana', page('b', 'c'));
    expect(pages.covering('ana', 'a')).toBeDefined();
    now += 2_000;
    expect(pages.covering('ana', 'a')).toBeUndefined();
    pages.put('ana', page('c', 'd'));
    expect(pages.covering('ana', 'b')).toBeUndefined();
    expect(pages.covering('ana', 'c')).toBeDefined();
  });

  it('hold 100,000 ids of all users at most', () => {
    const pages = rememberPages();
    const ids = Array.from({ length: 99 }, (_, i) => `b${i}`).sort();
    for (let user = 0; user < 1_100; user++) pages.put(`${user}`, page('a', ...ids));
    const kept = Array.from({ length: 1_100 }, (_, user) => pages.covering(`${user}`, 'a')).filter((one) => one);
    expect(kept).toHaveLength(Math.floor(100_000 / 99));
  });
});
