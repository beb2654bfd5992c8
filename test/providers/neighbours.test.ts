import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Memory, type NeighboursQuery, ORIGIN, type Provider, UNTRUSTED } from '#contract';
import { openProvider } from '../../src/registry.ts';
import { call, contextOf, memoryOf, refTo } from '../support/requests.ts';
import { makeDataDir } from '../support/subject.ts';

let data_dir: string;
beforeAll(async () => {
  data_dir = await makeDataDir();
});
afterAll(() => rm(data_dir, { recursive: true, force: true }));

describe.each(['memory', 'postgres'] as const)('neighbours in %s', (name) => {
  let provider: Required<Provider>;
  beforeAll(async () => {
    const ranking = { mode: 'keyword', keyword_weight: 1 } as const;
    provider = (await openProvider(name, {}, contextOf({ ranking, data_dir }))) as Required<Provider>;
  });
  afterAll(() => provider?.close());

  const source = { app: 'chat', ref: 'monday' };
  const addAll = async (user_id: string, ...items: Partial<Memory>[]): Promise<Memory[]> => {
    const inputs = items.map(({ content = '', ...fields }) => memoryOf(user_id, content, { source, ...fields }));
    return (await provider.batch({ items: inputs.map((input) => ({ input, vector: null })) }, call)) as Memory[];
  };
  const near = async (user_id: string, anchors: readonly (Memory | undefined)[], more?: Partial<NeighboursQuery>) => {
    const ids = anchors.map((memory) => memory?.id as string);
    const found = await provider.neighbours({ user_id, ids, within: null, max_bytes: 1e6, ...more }, call);
    return found.map(({ content }) => content);
  };
  const contents = (...names: string[]) => names.map((content) => ({ content }));

  it('[Decision 57] are the memory before and the one after, each once, newest first', async () => {
    const [a, b, c, , , f, g] = await addAll('ana', ...contents('a', 'b', 'c', 'd', 'e', 'f', 'g'));
    expect(await near('ana', [b])).toEqual(['c', 'a']);
    expect(await near('ana', [a, g])).toEqual(['f', 'b']);
    expect(await near('ana', [b, c, f])).toEqual(['g', 'e', 'd', 'a']);
    expect(await near('ana', [])).toEqual([]);
    expect(await near('ben', [b])).toEqual([]);
  });

  it('[Decision 57] are of the same user, scope, app and ref', async () => {
    const refs = [source, { ref: 'monday' }, { app: 'chat', ref: 'tuesday' }, { app: 'chat' }, null] as const;
    const all = await addAll(
      'cleo',
      ...refs.map((other) => ({ content: 'before', source: other })),
      { content: 'elsewhere', scope: 'x' },
      { content: 'one' },
      { content: 'elsewhere', scope: 'x' },
      ...refs.map((other) => ({ content: 'after', source: other })),
    );
    await addAll('dora', ...contents('of another user'));
    expect(await near('cleo', [all[6]])).toEqual(['after', 'before']);
    expect(await near('cleo', [all[3], all[4]])).toEqual([]);
  });

  it('[Decision 57] are told from others whatever a scope, an application or a ref contains', async () => {
    const [one] = await addAll(
      'gil',
      { content: 'one', scope: 'p/a' },
      { content: 'other', scope: 'p', source: { app: 'a', ref: 'chat/monday' } },
      { content: 'next', scope: 'p/a' },
    );
    expect(await near('gil', [one])).toEqual(['next']);
  });

  it('[Decision 57] are visible where the memory itself is', async () => {
    const [, b] = await addAll('eve', ...contents('a', 'b', 'c').map((one) => ({ ...one, scope: 'x/y' })));
    expect(await near('eve', [b], { within: ['x/*'] })).toEqual(['c', 'a']);
    expect(await near('eve', [b], { within: ['y/*', ''] })).toEqual([]);
    expect(await near('eve', [b], { within: null, outside: ['x'] })).toEqual([]);
    await provider.update({ ref: refTo(b?.id as string), patch: { scope: 'z' }, vector: null }, call);
    expect(await near('eve', [b])).toEqual([]);
  });

  it('[Decision 57] leave out what a query does not want, and do not reach beyond it', async () => {
    const [, b, , , e] = await addAll(
      'finn',
      { content: 'a' },
      { content: 'b' },
      { content: 'c', extensions: { [UNTRUSTED]: true, [ORIGIN]: { via: 'http' } } },
      { content: 'ä' },
      { content: 'e' },
      { content: 'f' },
    );
    expect(await near('finn', [b], { written: { trusted: true } })).toEqual(['a']);
    expect(await near('finn', [b], { written: { origin: { via: 'http' } } })).toEqual(['c']);
    expect(await near('finn', [e], { max_content_bytes: 1 })).toEqual(['f']);
    expect(await near('finn', [b, e], { max_bytes: 1 })).toEqual(['f', 'ä']);
  });
});
