import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Memory } from '../../clients/typescript/src/index.ts';
import { useDeletion } from './deletion.tsx';
import { FilterChips, FilterPanel, isFiltered } from './filters.tsx';
import { count, replacedBy } from './format.tsx';
import { Icon } from './icon.tsx';
import { Failure, Missing, useLoad } from './load.tsx';
import { MemoryForm } from './memory-form.tsx';
import { MemoryRow, type RowActions } from './memory-row.tsx';
import { go, href } from './route.ts';
import { useSaving } from './saving.tsx';
import { useSession } from './session.ts';
import { FirstSteps, NoUser } from './start.tsx';
import { Empty, Menu, NewButton, Title } from './ui.tsx';
import { type Filters, MOST_FOUND, useMemories } from './use-memories.ts';
import { focusRow, placeOf, WindowList } from './window-list.tsx';

/** The memories of a user. */
export function Memories({ user, ...filters }: Partial<Filters>) {
  if (user === undefined) return <NoUser icon="memories" title="Whose memories?" />;
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
  const [filtering, setFiltering] = useState(false);
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
  const chosen = items.filter(({ id }) => selected.has(id));
  const saving = useSaving(filters, items, chosen);
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
    const state = { selected: selected.has(id), editing: editing === id, leaving: deletion.leaving.has(id) };
    const isLess = lessLikely?.has(id);
    return (
      <MemoryRow
        key={id}
        place={placeOf(index, items.length, more)}
        onSaved={saved}
        onCancel={close}
        {...{ memory, index, filters, state, isLess, replaced, actions }}
      />
    );
  };

  const total = stats && !isFiltered(filters) ? ` of ${count(stats.count)}` : '';
  const by = /^key:(.+)/s.exec(filters.origin ?? '')?.[1];
  return (
    <div class="list">
      <Title text={`Memories of ${user}`}>
        {verbs.includes('add') && <NewButton text="Add memory" isOpen={adding} onClick={() => setAdding(true)} />}
      </Title>
      <Find filters={filters} onFilter={filter} filtering={filtering} onFilters={() => setFiltering(!filtering)} />
      {filtering && <FilterPanel key={JSON.stringify(filters)} filters={filters} stats={stats} onFilter={filter} />}
      <FilterChips filters={filters} onFilter={filter} />
      <div class="toolbar">
        {chosen.length > 0 ? (
          <>
            <span>{count(chosen.length)} selected</span>
            {verbs.includes('delete') && (
              <button type="button" class="danger" onClick={() => deletion.start(chosen)}>
                <Icon name="remove" />
                Delete selected
              </button>
            )}
            <button type="button" class="quiet" onClick={() => setSelected(new Set())}>
              Select none
            </button>
          </>
        ) : (
          items.length > 0 && (
            <button
              type="button"
              class="quiet"
              onClick={() => setSelected(new Set(items.map(({ id }) => id)))}
              aria-label="Select all that are loaded"
            >
              Select all
            </button>
          )
        )}
        <output>
          {!loaded
            ? 'Reading…'
            : filters.q
              ? `${foundText(items, lessLikely)}, best first; a search finds at most ${MOST_FOUND}`
              : items.length > 0 && `${count(items.length)}${more ? ' loaded' : ''}${total}`}
        </output>
        {features.rollback && by && <a href={href('rollback', { user, key: by })}>Roll back what {by} wrote</a>}
        {saving.status}
        {items.length > 0 && <Menu label="Save the list" items={saving.items} />}
      </div>
      {adding && (
        <MemoryForm user={user} scope={filters.scope?.replace(/\/?\*$/, '')} onSaved={saved} onCancel={close} />
      )}
      {error !== undefined && <Failure error={error} retry={retry} />}
      <Missing from={leftOut} />
      {loaded && items.length === 0 && error === undefined && !adding ? (
        <Nothing filters={filters} />
      ) : (
        // biome-ignore lint/a11y/noStaticElementInteractions: the keys work on the focused row
        <div class="rows" aria-busy={!loaded} onKeyDown={(event) => onKey(event, items, actions)}>
          <WindowList label={`Memories of ${user}`} count={items.length} row={row} more={more} onNearEnd={loadMore} />
        </div>
      )}
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

function Nothing({ filters }: { filters: Filters }) {
  const { user } = filters;
  return isFiltered(filters) ? (
    <Empty icon="filter" title="No memory is left by these filters">
      <p>
        <a href={href('memories', { user })}>Show all memories of {user}</a>
      </p>
    </Empty>
  ) : (
    <Empty icon="memories" title={`Nothing is remembered about ${user} yet`}>
      <FirstSteps user={user} />
    </Empty>
  );
}

interface FindProps {
  readonly filters: Filters;
  readonly onFilter: (changed: Partial<Filters>) => void;
  readonly filtering: boolean;
  readonly onFilters: () => void;
}

function Find({ filters, onFilter, filtering, onFilters }: FindProps) {
  const { capabilities } = useSession();
  const submit = (event: Event) => {
    event.preventDefault();
    onFilter({ q: String(new FormData(event.currentTarget as HTMLFormElement).get('q') ?? '') });
  };
  return (
    <form class="find" key={filters.q} onSubmit={submit}>
      {capabilities.verbs.includes('search') && (
        <label>
          <span class="hidden">Search</span>
          <input type="search" name="q" defaultValue={filters.q ?? ''} placeholder="Search by meaning and words" />
        </label>
      )}
      <button type="button" aria-expanded={filtering} onClick={onFilters}>
        <Icon name="filter" />
        Filters
      </button>
    </form>
  );
}
