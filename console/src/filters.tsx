import type { Stats } from '../../clients/typescript/src/index.ts';
import { Icon } from './icon.tsx';
import { href } from './route.ts';
import { ScopeTree } from './scope-tree.tsx';
import { useSession } from './session.ts';
import type { Filters } from './use-memories.ts';

type Name = Exclude<keyof Filters, 'user' | 'q'>;
type OnFilter = (changed: Partial<Filters>) => void;

const NAMES: Readonly<Record<Name, string>> = {
  scope: 'Scope',
  tag: 'Tag',
  origin: 'Origin',
  since: 'From',
  until: 'To',
};

export const isFiltered = ({ user: _, ...filters }: Filters): boolean => Object.values(filters).some(Boolean);

/** The filters that apply, each with the way to remove it. */
export function FilterChips({ filters, onFilter }: { filters: Filters; onFilter: OnFilter }) {
  const given = (Object.keys(NAMES) as Name[]).filter((name) => filters[name]);
  if (!isFiltered(filters)) return null;
  return (
    <div class="chips">
      {given.map((name) => (
        <button
          key={name}
          type="button"
          class="chip"
          aria-label={`Remove the filter ${NAMES[name]} ${filters[name]}`}
          onClick={() => onFilter({ [name]: '' })}
        >
          {NAMES[name]}: {filters[name]}
          <Icon name="close" />
        </button>
      ))}
      <a href={href('memories', { user: filters.user })}>Clear</a>
    </div>
  );
}

interface FilterPanelProps {
  readonly filters: Filters;
  readonly stats: Stats | undefined;
  readonly onFilter: OnFilter;
}

/** Fields for each filter; beside them the scopes and tags there are. */
export function FilterPanel({ filters, stats, onFilter }: FilterPanelProps) {
  const { capabilities } = useSession();
  const { features } = capabilities;
  const submit = (event: Event) => {
    event.preventDefault();
    onFilter(Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)) as Partial<Filters>);
  };
  const field = (name: Name, placeholder = '') => (
    <label>
      {NAMES[name]}
      <input name={name} defaultValue={filters[name] ?? ''} placeholder={placeholder} />
    </label>
  );
  const day = (name: Name) => (
    <label>
      {NAMES[name]}
      <input type="date" name={name} defaultValue={filters[name] ?? ''} />
    </label>
  );
  return (
    <section class="panel filter-panel" aria-label="Filters">
      <form class="fields" onSubmit={submit}>
        {features.scopes !== 'none' && field('scope', 'work/*')}
        {features.tags !== false && field('tag')}
        {features.origins && field('origin', 'key:crawler')}
        {features.temporal && day('since')}
        {features.temporal && day('until')}
        <button type="submit">Apply</button>
      </form>
      {stats && features.scopes !== 'none' && (
        <ScopeTree {...stats} stores={capabilities['x-stores'] ?? []} filters={filters} onPick={onFilter} />
      )}
    </section>
  );
}
