import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
  validateNamespace,
} from '@langchain/langgraph-checkpoint';
import type { MemoryClient } from '../client.ts';
import type { Memory } from '../types.ts';
import { addExtracted } from './origin.ts';
import { checkedScope, decodeSegment, encodeSegment, ignoreMissing } from './segments.ts';

export interface StoreOptions {
  readonly userId: string;
  /** Scope of the items, so that other memories of the user stay apart; default `langgraph`. */
  readonly scope?: string;
  /** The source of the items; default `langgraph`. */
  readonly app?: string;
  /** Whether a search with a query leaves out what is not valid now or superseded; default true. */
  readonly current?: boolean;
  /** The text of a value that is embedded and searched; default: its texts, at any depth. */
  readonly textOf?: (value: Record<string, unknown>) => string;
}

/** In front of the key, which is the last segment of an item's scope: a namespace may have the same name. */
const KEY = '=';
const PAGE = 500;
const MOST_RESULTS = 100;

/**
 * A LangGraph store whose items are memories of one user: a namespace and a key become a scope, so that every lookup is
 * one of exactly that item, and a search of `tenant/acme` never finds `acme-corp`. Items are listed newest first. Two
 * concurrent first puts of one key may both add an item; the newest counts, and the next put or delete removes the other.
 * What untrusted keys wrote counts as absent.
 */
export class MemoryStore extends BaseStore {
  readonly #client: MemoryClient;
  /** No item could show the mark of an untrusted key. */
  readonly #query: { readonly user_id: string; readonly untrusted: false };
  readonly #scope: string;
  readonly #app: string;
  readonly #current: boolean;
  readonly #textOf: (value: Record<string, unknown>) => string;

  constructor(
    client: MemoryClient,
    { userId, scope = 'langgraph', app = 'langgraph', current = true, textOf = allTexts }: StoreOptions,
  ) {
    super();
    this.#client = client;
    this.#query = { user_id: userId, untrusted: false };
    this.#scope = checkedScope(scope);
    this.#app = app;
    this.#current = current;
    this.#textOf = textOf;
  }

  /** Reads see the store as it was before the puts of the same batch; of two puts of one key the last one counts. */
  override async batch<Operations extends readonly Operation[]>(
    operations: Operations,
  ): Promise<OperationResults<Operations>> {
    const puts = new Map<string, PutOperation>();
    const results: unknown[] = [];
    for (const operation of operations) {
      if ('value' in operation) {
        puts.set(this.#scopeOf(operation), operation);
        results.push(undefined);
      } else if ('namespacePrefix' in operation) results.push(await this.#find(operation));
      else if ('key' in operation) results.push(await this.#get(operation));
      else results.push(await this.#namespaces(operation));
    }
    for (const [scope, operation] of puts) await this.#put(scope, operation);
    return results as OperationResults<Operations>;
  }

  async #get(operation: GetOperation): Promise<Item | null> {
    const [memory] = await this.#at(this.#scopeOf(operation));
    return memory ? this.#itemOf(memory) : null;
  }

  async #put(scope: string, { value }: PutOperation): Promise<void> {
    const [current, ...older] = await this.#at(scope);
    const deletions = value === null && current ? [current, ...older] : older;
    for (const { id } of deletions) await this.#client.memories.delete(id).catch(ignoreMissing);
    if (value === null) return;
    const fields = { content: this.#textOf(value) || '(no text)', 'x-value': value };
    if (current) await this.#client.memories.update(current.id, fields);
    else await addExtracted(this.#client, this.#app, { user_id: this.#query.user_id, scope, ...fields });
  }

  async #find({ namespacePrefix, query, filter = {}, limit = 10, offset = 0 }: SearchOperation): Promise<SearchItem[]> {
    const below = this.#below(namespacePrefix);
    const matches = ({ value }: Item) =>
      Object.entries(filter).every(([field, condition]) => compare(value[field], condition));
    if (query) {
      const { results } = await this.#client.memories.search({
        ...this.#query,
        scope: below,
        q: query,
        limit: MOST_RESULTS,
        current: this.#current,
      });
      const items = results.map(({ memory, score }) => ({ ...this.#itemOf(memory), score }));
      return items.filter(matches).slice(offset, offset + limit);
    }
    const items: SearchItem[] = [];
    for await (const item of this.#items(below)) {
      if (items.length >= offset + limit) break;
      if (matches(item)) items.push(item);
    }
    return items.slice(offset);
  }

  async #namespaces({ matchConditions, maxDepth, limit, offset = 0 }: ListNamespacesOperation): Promise<string[][]> {
    const prefix = matchConditions?.find(({ matchType }) => matchType === 'prefix')?.path ?? [];
    const wildcard = prefix.indexOf('*');
    const namespaces = new Map<string, string[]>();
    for await (const { namespace } of this.#items(this.#below(wildcard < 0 ? prefix : prefix.slice(0, wildcard)))) {
      if (matchConditions?.every((condition) => fits(condition, namespace)) === false) continue;
      const path = namespace.slice(0, maxDepth);
      namespaces.set(path.join(':'), path);
    }
    const sorted = [...namespaces].sort(([a], [b]) => a.localeCompare(b)).map(([, namespace]) => namespace);
    return sorted.slice(offset, offset + (limit ?? sorted.length));
  }

  async *#items(prefix: string): AsyncGenerator<Item> {
    const scopes = new Set<string>();
    for await (const memory of this.#client.memories.list({
      ...this.#query,
      scope: `${prefix}*`,
      limit: PAGE,
    })) {
      if (!memory.scope || scopes.has(memory.scope)) continue;
      scopes.add(memory.scope);
      yield this.#itemOf(memory);
    }
  }

  /** Newest first. */
  async #at(scope: string): Promise<Memory[]> {
    return (await this.#client.memories.list({ ...this.#query, scope }).page()).items;
  }

  #scopeOf({ namespace, key }: { namespace: string[]; key: string }): string {
    validateNamespace(namespace, { allowReservedRoot: true });
    return this.#below(namespace) + encodeSegment(KEY + key);
  }

  #below(namespace: readonly string[]): string {
    return [this.#scope, ...namespace.map(encodeSegment), ''].join('/');
  }

  #itemOf(memory: Memory): Item {
    const path = (memory.scope ?? '')
      .slice(this.#scope.length + 1)
      .split('/')
      .map(decodeSegment);
    return {
      namespace: path.slice(0, -1),
      key: (path.at(-1) ?? '').slice(KEY.length),
      value: memory['x-value'] as Item['value'],
      createdAt: new Date(memory.created_at),
      updatedAt: new Date(memory.updated_at ?? memory.created_at),
    };
  }
}

/** All texts of a value, one a line. */
function allTexts(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  return Object.values(value).map(allTexts).filter(Boolean).join('\n');
}

function fits({ matchType, path }: MatchCondition, namespace: readonly string[]): boolean {
  const from = matchType === 'prefix' ? 0 : namespace.length - path.length;
  return (
    from >= 0 &&
    path.length <= namespace.length &&
    path.every((label, i) => label === '*' || label === namespace[from + i])
  );
}

const OPERATORS: Readonly<Record<string, (value: unknown, operand: unknown) => boolean>> = {
  $eq: (value, operand) => value === operand,
  $ne: (value, operand) => value !== operand,
  $gt: (value, operand) => Number(value) > Number(operand),
  $gte: (value, operand) => Number(value) >= Number(operand),
  $lt: (value, operand) => Number(value) < Number(operand),
  $lte: (value, operand) => Number(value) <= Number(operand),
  $in: (value, operand) => Array.isArray(operand) && operand.includes(value),
  $nin: (value, operand) => !Array.isArray(operand) || !operand.includes(value),
};

/** A filter is a value, or operators that must all hold. */
function compare(value: unknown, condition: unknown): boolean {
  if (
    typeof condition !== 'object' ||
    condition === null ||
    !Object.keys(condition).every((name) => name in OPERATORS)
  ) {
    return value === condition;
  }
  return Object.entries(condition).every(([name, operand]) => OPERATORS[name]?.(value, operand));
}
