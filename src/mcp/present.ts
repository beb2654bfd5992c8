import { beginningOf } from '#contract';
import type { WireMemory } from '../verbs/memory.ts';

/** Limit for the memories of one answer, as JSON: about 5,000 tokens. */
export const MAX_CHARACTERS = 20_000;

/** A memory as an agent sees it: without empty fields, and without those that say nothing to it. */
export interface MemoryView {
  readonly id: string;
  readonly content: string;
  /** The content is cut and other fields are left out. */
  readonly truncated?: true;
  readonly [field: string]: unknown;
}

const HIDDEN: ReadonlySet<string> = new Set(['user_id', 'embedding_model', 'status']);
const isEmpty = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);

/** A memory within `limit` characters of JSON. A larger one keeps the beginning of its content. */
export function present(memory: WireMemory, limit = MAX_CHARACTERS): MemoryView {
  const fields = Object.entries(memory).filter(([name, value]) => !HIDDEN.has(name) && !isEmpty(value));
  const whole = Object.fromEntries(fields) as unknown as MemoryView;
  if (sizeOf(whole) <= limit) return whole;
  const { id, content, created_at } = memory;
  for (let length = limit; ; length = length >> 1) {
    const view = { id, content: beginningOf(content, length), created_at, truncated: true } as const;
    if (length === 0 || sizeOf(view) <= limit) return view;
  }
}

/** All memories, each with an equal share of an answer. */
export const presentAll = (memories: readonly WireMemory[]): MemoryView[] =>
  memories.map((memory) => present(memory, Math.floor(MAX_CHARACTERS / memories.length)));

/** The first words of a memory, on one line. */
export const titleOf = ({ content }: WireMemory): string =>
  beginningOf(content.slice(0, 200).replaceAll(/\s+/gu, ' ').trim(), 80);

const sizeOf = (value: object): number => JSON.stringify(value).length;
