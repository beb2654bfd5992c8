import type { EmbeddingUsage, UsageMeter } from '#contract';
import { createTally, NOTHING_USED, type Used } from '#toolbox';

type App = EmbeddingUsage['app'];

/** Counts the requests of one embedder to its service. */
export interface Meter extends UsageMeter {
  /** A request has reached the service. It counts for the first text. */
  sent(apps: readonly App[]): void;
  /** The service has embedded the texts. `apps`: who gave each. Tokens that are no number are unknown. */
  answered(texts: readonly string[], apps: readonly App[], tokens: unknown): void;
}

/** Names counted by themselves on one day: the subjects of tokens have no end. */
const MAX_NAMES = 1_000;
/** Stands for all further ones. */
const OTHERS = '(others)';
/** Longest name, in UTF-16 units: an index of Postgres must hold it. */
const MAX_NAME = 256;

const cut = (name: string): string => name.slice(0, MAX_NAME).replaceAll('\0', '').toWellFormed();

export function createMeter(ofModel: string): Meter {
  const model = cut(ofModel);
  const tally = createTally();
  const totals = { texts: 0, tokens: 0, texts_without_tokens: 0, requests: 0 };
  let today = '';
  const names = new Set<App>();
  const nameOf = (app: App): App => {
    if (app === null) return null;
    const name = cut(app);
    if (names.size >= MAX_NAMES && !names.has(name)) return OTHERS;
    names.add(name);
    return name || null;
  };
  const count = (parts: readonly (Used & { readonly app: App })[]) => {
    const day = new Date().toISOString().slice(0, 10);
    if (day !== today) names.clear();
    today = day;
    for (const { app, texts, tokens, requests } of parts) {
      tally.add({ day, app: nameOf(app), model, texts, tokens, requests });
      totals.texts += texts;
      totals.tokens += tokens ?? 0;
      if (tokens === null) totals.texts_without_tokens += texts;
      totals.requests += requests;
    }
  };
  return {
    sent: ([app = null]) => count([{ app, ...NOTHING_USED, requests: 1 }]),
    answered(texts, apps, reported) {
      const sizes = texts.map(({ length }) => Math.max(1, length));
      const tokens = isCount(reported) ? shares(reported, sizes) : undefined;
      count(texts.map((_, i) => ({ app: apps[i] ?? null, texts: 1, tokens: tokens?.[i] ?? null, requests: 0 })));
    },
    take() {
      const rows = tally.rows();
      tally.clear();
      return rows;
    },
    totals: () => totals,
  };
}

/** More than any request can hold, so that products with the length of its texts stay exact. */
const MAX_TOKENS = 1e9;
const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_TOKENS;

/** Divides a whole number in proportion to positive sizes: whole numbers that add up to it, each less than 1 from its exact share. */
export function shares(total: number, sizes: readonly number[]): number[] {
  const all = sizes.reduce((sum, size) => sum + size, 0);
  let [before, given] = [0, 0];
  return sizes.map((size) => {
    before += size;
    const next = Math.round((total * before) / all);
    const share = next - given;
    given = next;
    return share;
  });
}
