import { check } from './refusal.ts';

/** What a page's successor is found by: the last key of the page, and what was asked for. */
export type PageKey = Readonly<Record<string, string>> & { readonly skip_past: string };

export const pageToken = (key: PageKey): string => Buffer.from(JSON.stringify(key)).toString('base64');

/** Where a page begins; '' without a token. Throws a 400 for a token this server did not give, or gave for another question. */
export function skipPast(token: string | null | undefined, asked: Readonly<Record<string, string>>): string {
  if (token === null || token === undefined) return '';
  const { skip_past } = readToken(token);
  check(typeof skip_past === 'string' && pageToken({ skip_past, ...asked }) === token, 'Invalid pagination token');
  return skip_past;
}

function readToken(token: string): Partial<PageKey> {
  try {
    return Object(JSON.parse(Buffer.from(token, 'base64').toString())) as Partial<PageKey>;
  } catch {
    return {};
  }
}

/** One page of something that was read with one item more than fits; with the key to go on from, if there is more. */
export function cut<Item>(items: readonly Item[], limit: number): { page: readonly Item[]; last: Item | undefined } {
  const page = items.slice(0, limit);
  return { page, last: items.length > limit ? page.at(-1) : undefined };
}
