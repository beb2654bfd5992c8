import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseColumnReference } from '../../providers/postgres/mapped/field-mapping.ts';

const column = (name: string) => ({ kind: 'column', column: name });
const path = (name: string, ...keys: string[]) => ({ kind: 'path', column: name, path: keys });

describe('a place', () => {
  it.each([
    ['created_at', column('created_at')],
    // Not folded to lower case.
    ['pageContent', column('pageContent')],
    ['"pageContent"', column('pageContent')],
    ['"a ""b"" \'c\' -> d"', column(`a "b" 'c' -> d`)],
    ['$x', undefined],
    ['x$1', column('x$1')],
    [`metadata->>'user_id'`, path('metadata', 'user_id')],
    // With either arrow at the end.
    [`metadata->'user_id'`, path('metadata', 'user_id')],
    [`"Meta Data"->'a'->>'it''s'`, path('Meta Data', 'a', `it's`)],
    [`m->''`, path('m', '')],
    [`'shared'`, { kind: 'constant', value: 'shared' }],
    [`'it''s'`, { kind: 'constant', value: `it's` }],
    [`''`, { kind: 'constant', value: '' }],
    ['', undefined],
    ['a b', undefined],
    ['a.b', undefined],
    ['1a', undefined],
    ['"a', undefined],
    ['""', undefined],
    [`a -> 'b'`, undefined],
    [`a->b`, undefined],
    [`a->1`, undefined],
    [`a->'b`, undefined],
    [`a#>>'{b}'`, undefined],
    [`'a' || 'b'`, undefined],
    [`'a'b'`, undefined],
    ['lower(a)', undefined],
    [`a; drop table a`, undefined],
    ['a\0', undefined],
    ['"a\0"', undefined],
  ])('%s', (text, place) => {
    expect(parseColumnReference(text)).toEqual(place);
  });

  it('says every name and every key', () => {
    const name = fc.string({ unit: 'binary', minLength: 1 }).filter((text) => !text.includes('\0'));
    const quoted = (text: string, quote: string) => quote + text.replaceAll(quote, quote + quote) + quote;
    fc.assert(
      fc.property(name, fc.array(name), (each, keys) => {
        const text = `${quoted(each, '"')}${keys.map((key) => `->${quoted(key, "'")}`).join('')}`;
        expect(parseColumnReference(text)).toEqual(keys.length === 0 ? column(each) : path(each, ...keys));
        expect(parseColumnReference(quoted(each, "'"))).toEqual({ kind: 'constant', value: each });
      }),
    );
  });
});
