import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Memory } from '../../clients/typescript/src/index.ts';
import { useDeletion } from './deletion.tsx';
import { count, replacedBy } from './format.tsx';
import { Failure, Missing, useLoad } from './load.tsx';
import { MemoryForm } from './memory-form.tsx';
import { MemoryRow, type RowActions } from './memory-row.tsx';
import { go, href } from './route.ts';
import { SaveButtons } from './save-buttons.tsx';
import { ScopeTree } from './scope-tree.tsx';
import { useSession } from './session.ts';
import { FirstSteps, Start } from './start.tsx';
import { type Filters, MOST_FOUND, useMemories } from './use-memories.ts';
import { focusRow, placeOf, WindowList } from './window-list.tsx';

/** The memories of a user. */
export function Memories({ user, ...filters }: Partial<Filters>) {
  if (user === undefined) return <Start />;
  return <MemoriesOf key={user} filters={{ user, ...filters }} />;
}

function MemoriesOf({ filters }: { filters: Filters }) {
  const { client, capabilities } = useSession();
  const { user } = filters;
  const { verbs, features } = capabilities;
  const { items = [], loaded, more, leftOut, lessLikely, error, loadMore, retry, change } = useMemories(filters);
  const { data: stats, reload } = useLoad(features.stats ? user : undefined, (signal) =>
    client.users.stats(user, { signal }),
  );
  const [editing, setEditing] = useState<string>();
  const [adding, setAdding] = useState(false);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());

  const deletion = useDeletion();
  const { deleted } = deletion;
  useEffect(() => {
    if (deleted.size === 0) return;
    change((all) => all.filter(({ id }) => !deleted.has(id)));
    setSelected((all) => new Set([...all].filter((id) => !deleted.has(id))));
    reload();
  }, [deleted, change, reload]);
  const replaced = useMemo(() => replacedBy(items), [items]);
  const filter = (changed: Partial<Filters>) => go('memories', { ...filters, ...changed });
  const close = () => {
    const row = document.querySelector(`.row.open`);
    const index = items.findIndex(({ id }) => id === editing);
    setEditing(undefined);
    setAdding(false);
    if (row && index >= 0) focusRow(row, index);
  };
  const saved = (memory: Memory) => {
    const isOld = items.some(({ id }) => id === memory.id);
    change((all) => (isOld ? all.map((one) => (one.id === memory.id ? memory : one)) : [memory, ...all]));
    close();
    reload();
  };
  const actions: RowActions = {
    select({ id }) {
      const next = new Set(selected);
      if (!next.delete(id)) next.add(id);
      setSelected(next);
    },
    edit: verbs.includes('update') ? ({ id }) => setEditing(id) : undefined,
    remove: verbs.includes('delete') ? (memory) => deletion.start([memory]) : undefined,
  };
  const row = (index: number) => {
    const memory = items[index];
    if (!memory) return null;
    const { id } = memory;
    const state = {
      selected: selected.has(id),
      editing: editing === id,
      leaving: deletion.leaving.has(id),
    };
    const place = placeOf(index, items.length, more);
    return (
      <MemoryRow
        key={id}
        memory={memory}
        index={index}
        place={place}
        filters={filters}
        state={state}
        replaced={replaced}
        actions={actions}
        onSaved={saved}
        onCancel={close}
      />
    );
  };

  const chosen = items.filter(({ id }) => selected.has(id));
  const by = /^key:(.+)/s.exec(filters.origin ?? '')?.[1];
  const isFiltered = Object.keys(filters).some((name) => name !== 'user' && filters[name as keyof Filters]);
  const total = stats && !isFiltered ? ` of ${count(stats.count)}` : '';
  return (
    <div class="columns">
      <h1 class="hidden">Memories of {user}</h1>
      {stats && features.scopes !== 'none' && (
        <ScopeTree
          scopes={stats.scopes}
          tags={stats.tags}
          stores={capabilities['x-stores'] ?? []}
          filters={filters}
          onPick={filter}
        />
      )}
      <section class="list" aria-label="Memories">
        <FilterBar key={JSON.stringify(filters)} filters={filters} onFilter={filter} />
        <div class="toolbar">
          <output>
            {filters.q
              ? `${foundText(items, lessLikely)}, best first; a search finds at most ${MOST_FOUND}`
              : `${count(items.length)}${more ? ' loaded' : ''}${total}`}
          </output>
          {features.rollback && by && <a href={href('rollback', { user, key: by })}>Roll back what {by} wrote</a>}
          {chosen.length > 0 && <span>{count(chosen.length)} selected</span>}
          {chosen.length > 0 && verbs.includes('delete') && (
            <button type="button" onClick={() => deletion.start(chosen)}>
              Delete selected
            </button>
          )}
          <SaveButtons filters={filters} found={items} chosen={chosen} />
          {verbs.includes('add') && (
            <button type="button" class="main" onClick={() => setAdding(true)}>
              Add
            </button>
          )}
        </div>
        {adding && (
          <MemoryForm user={user} scope={filters.scope?.replace(/\/?\*$/, '')} onSaved={saved} onCancel={close} />
        )}
        {error !== undefined && <Failure error={error} retry={retry} />}
        <Missing from={leftOut} />
        {loaded && items.length === 0 && error === undefined && <Nothing user={user} isFiltered={isFiltered} />}
        {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys work on the focused row */}
        <div class="rows" onKeyDown={(event) => onKey(event, items, actions)}>
          <WindowList label={`Memories of ${user}`} count={items.length} row={row} more={more} onNearEnd={loadMore} />
        </div>
        <p class="keys">
          <kbd>/</kbd> search <kbd>↑</kbd> <kbd>↓</kbd> move <kbd>Enter</kbd> open <kbd>e</kbd> edit <kbd>x</kbd> select{' '}
          <kbd>Delete</kbd> delete
        </p>
      </section>
    </div>
  );
}

/** How many results there are, those far below the best apart. */
function foundText(items: readonly Memory[], lessLikely?: ReadonlySet<string>): string {
  const less = items.filter(({ id }) => lessLikely?.has(id)).length;
  return `${count(items.length - less)} found${less > 0 ? `, ${count(less)} less likely` : ''}`;
}

/** The keys of the focused row. */
function onKey(event: KeyboardEvent, items: readonly Memory[], { select, edit, remove }: RowActions): void {
  const row = (event.target as Element).closest<HTMLElement>('[data-row]');
  const index = Number(row?.dataset.row);
  const memory = items[index];
  if (!row || !memory || event.ctrlKey || event.metaKey || event.altKey) return;
  const actions: Record<string, (() => void) | undefined> = {
    ArrowDown: () => focusRow(row, Math.min(items.length - 1, index + 1)),
    ArrowUp: () => focusRow(row, Math.max(0, index - 1)),
    Home: () => focusRow(row, 0),
    End: () => focusRow(row, items.length - 1),
    x: () => select(memory),
    e: edit && (() => edit(memory)),
    Delete: remove && (() => remove(memory)),
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function Nothing({ user, isFiltered }: { user: string; isFiltered: boolean }) {
  if (isFiltered) return <p class="empty">No memory is left by these filters.</p>;
  return (
    <div class="empty">
      <h2>Nothing is remembered about {user} yet</h2>
      <FirstSteps user={user} />
    </div>
  );
}

function FilterBar({ filters, onFilter }: { filters: Filters; onFilter: (changed: Partial<Filters>) => void }) {
  const { capabilities } = useSession();
  const { verbs, features } = capabilities;
  const submit = (event: Event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement));
    onFilter(given as Partial<Filters>);
  };
  const field = (name: 'q' | 'scope' | 'tag' | 'origin' | 'since' | 'until') => ({
    name,
    defaultValue: filters[name] ?? '',
  });
  return (
    <form class="filters" onSubmit={submit}>
      {verbs.includes('search') && (
        <label>
          Text
          <input type="search" {...field('q')} placeholder="by meaning and words" />
        </label>
      )}
      {features.scopes !== 'none' && (
        <label>
          Scope
          <input {...field('scope')} placeholder="work/*" />
        </label>
      )}
      {features.tags !== false && (
        <label>
          Tag
          <input {...field('tag')} />
        </label>
      )}
      {features.origins && (
        <label>
          Origin
          <input {...field('origin')} placeholder="key:crawler" />
        </label>
      )}
      {features.temporal && (
        <>
          <label>
            From
            <input type="date" {...field('since')} />
          </label>
          <label>
            To
            <input type="date" {...field('until')} />
          </label>
        </>
      )}
      <button type="submit">Filter</button>
      <a href={href('memories', { user: filters.user })}>Clear</a>
    </form>
  );
}
