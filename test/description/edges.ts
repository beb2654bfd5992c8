import type { Schema } from './document.ts';

/** Values at the bounds a schema states, and just beyond them. */
export interface Edges {
  readonly within: readonly unknown[];
  readonly beyond: readonly unknown[];
}

const asList = <T>(value: T | readonly T[] | undefined): readonly T[] =>
  value === undefined ? [] : Array.isArray(value) ? (value as readonly T[]) : [value as T];

export const edgesOf = (schema: Schema): Edges => {
  const types = asList<string>(schema.type);
  const parts = [numbers(schema), texts(schema), lists(schema), choices(schema)];
  return {
    within: [...parts.flatMap(({ within }) => within), ...(types.includes('null') ? [null] : [])],
    beyond: [...parts.flatMap(({ beyond }) => beyond), ...(types.includes('null') ? [] : [null])],
  };
};

const numbers = ({ type, minimum, maximum }: Schema): Edges => {
  const step = asList<string>(type).includes('integer') ? 1 : 0.001;
  const bounds = [minimum, maximum].filter((bound) => bound !== undefined);
  return {
    within: bounds,
    beyond: [...asList(minimum).map((least) => least - step), ...asList(maximum).map((most) => most + step)],
  };
};

/** Characters are code points; astral ones tell them from UTF-16 units. Very long texts stay plain, for speed. */
const textOf = (length: number): string => (length > 2000 ? 'a' : '😀').repeat(length);

const texts = ({ minLength, maxLength, pattern, enum: choice }: Schema): Edges => {
  if (choice) return { within: [], beyond: [] };
  return {
    within: [...asList(minLength), ...asList(maxLength)].map(textOf),
    beyond: [
      ...asList(minLength).map((least) => textOf(least - 1)),
      ...asList(maxLength).map((most) => textOf(most + 1)),
      ...(pattern === undefined ? [] : ['', ' \t\n'].filter((text) => !new RegExp(pattern, 'u').test(text))),
    ],
  };
};

const lists = ({ items, maxItems }: Schema): Edges => {
  if (!items) return { within: [], beyond: [] };
  const listOf = (length: number) => Array.from({ length }, (_, index) => `item ${index}`);
  const inner = edgesOf(items);
  return {
    within: [...asList(maxItems).map(listOf), ...inner.within.map((value) => [value])],
    beyond: [...asList(maxItems).map((most) => listOf(most + 1)), ...inner.beyond.map((value) => [value])],
  };
};

const choices = ({ enum: choice }: Schema): Edges =>
  choice ? { within: choice, beyond: ['another'] } : { within: [], beyond: [] };
