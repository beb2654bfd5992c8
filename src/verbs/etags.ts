/**
 * Entity tags of memories (Decision 36): the `updated_at` in quotes, so that a client can also make one from a listed memory.
 */
import { invalidRequest, type Memory } from '#contract';

/** While a memory is not indexed, its status is part of the tag: it changes without `updated_at`. */
export const etagOf = ({ updated_at, status }: Pick<Memory, 'updated_at' | 'status'>): string =>
  `"${updated_at}${status === null || status === 'done' ? '' : `-${status}`}"`;

/** Whether `If-None-Match` names this tag. Malformed parts match nothing, since the client only gets more than it needs. */
export const namesEtag = (header: string, etag: string): boolean =>
  header.trim() === '*' || tagsIn(header).some(({ value }) => `"${value}"` === etag);

/**
 * The versions (`updated_at`) that `If-Match` admits; undefined: any. A weak tag admits none, and so does a tag that this
 * gateway cannot have sent. Throws `invalid_request` if the header is malformed.
 */
export function versionsIn(header: string): string[] | undefined {
  if (header.trim() === '*') return undefined;
  const tags = tagsIn(header);
  if (tags.length === 0 || tags.at(-1)?.end !== header.length) {
    throw invalidRequest('If-Match: must be "*" or a list of entity tags in double quotes');
  }
  return tags.flatMap(({ value, weak }) => {
    const version = weak ? undefined : VERSION.exec(value)?.[1];
    return version !== undefined && isMoment(version) ? [version] : [];
  });
}

const VERSION = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(?:-[a-z]+)?$/;

/** Backends reject impossible dates. */
const isMoment = (text: string): boolean => {
  const date = new Date(text);
  return !Number.isNaN(date.getTime()) && date.toISOString() === text && !text.startsWith('0000');
};

const TAG = /\s*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)/gy;

/** The entity tags from the start of a list, up to where it is malformed. `end`: where the next one begins. */
const tagsIn = (header: string) =>
  [...header.matchAll(TAG)].map(({ 0: text, 1: weak, 2: value = '', index }) => ({
    value,
    weak: weak !== undefined,
    end: index + text.length,
  }));
