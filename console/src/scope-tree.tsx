import type { MountedStore, Stats } from '../../clients/typescript/src/index.ts';
import { count } from './format.tsx';
import type { Filters } from './use-memories.ts';

interface Node {
  readonly path: string;
  readonly name: string;
  /** Memories in this scope, and in those below. */
  own: number;
  all: number;
  readonly below: Map<string, Node>;
}

function treeOf(scopes: Stats['scopes'], stores: readonly MountedStore[]): Node {
  const root: Node = { path: '', name: '', own: 0, all: 0, below: new Map() };
  const mounts = stores.map(({ mount }) => ({ scope: mount, count: 0 }));
  for (const { scope, count: size } of [...scopes, ...mounts]) {
    let node = root;
    node.all += size;
    for (const name of scope?.split('/') ?? []) {
      const path = node.path === '' ? name : `${node.path}/${name}`;
      const next = node.below.get(name) ?? { path, name, own: 0, all: 0, below: new Map() };
      node.below.set(name, next);
      node = next;
      node.all += size;
    }
    node.own += size;
  }
  return root;
}

interface ScopeTreeProps extends Pick<Stats, 'scopes' | 'tags'> {
  readonly stores: readonly MountedStore[];
  readonly filters: Filters;
  readonly onPick: (changed: Partial<Filters>) => void;
}

/** The user's scopes as a tree with the stores mounted in it, and tags, with counts; the backend tells the largest hundred of each. */
export function ScopeTree({ scopes, tags, stores, filters, onPick }: ScopeTreeProps) {
  const mounted = new Map(stores.map((store) => [store.mount, store]));
  const choice = (name: string, size: number, picked: boolean, change: Partial<Filters>) => (
    <button type="button" class="choice" aria-pressed={picked} onClick={() => onPick(change)}>
      <span dir="auto">{name}</span> <small>{count(size)}</small>
    </button>
  );
  const branch = (nodes: Iterable<Node>) => (
    <ul>
      {[...nodes].map((node) => {
        const isLeaf = node.below.size === 0;
        const glob = isLeaf ? node.path : `${node.path}/*`;
        const store = mounted.get(node.path);
        return (
          <li key={node.path}>
            {choice(isLeaf ? node.name : `${node.name}/`, node.all, filters.scope === glob, { scope: glob })}
            {store && (
              <span class="mark">
                {store.name === store.provider ? store.name : `${store.name}: ${store.provider}`}
              </span>
            )}
            {!isLeaf &&
              node.own > 0 &&
              choice(`${node.name} alone`, node.own, filters.scope === node.path, { scope: node.path })}
            {!isLeaf && branch(node.below.values())}
          </li>
        );
      })}
    </ul>
  );
  const tree = treeOf(scopes, stores);
  return (
    <aside class="tree" aria-label="Scopes and tags">
      <h2>Scopes</h2>
      {choice('all', tree.all, !filters.scope, { scope: '' })}
      {branch(tree.below.values())}
      {tags.length > 0 && <h2>Tags</h2>}
      <ul>
        {tags.slice(0, 30).map(({ tag, count: size }) => (
          <li key={tag}>{choice(tag, size, filters.tag === tag, { tag: filters.tag === tag ? '' : tag })}</li>
        ))}
      </ul>
    </aside>
  );
}
