import type { Memory } from '../../clients/typescript/src/index.ts';
import { Marks, Time, Written } from './format.tsx';
import { MemoryForm } from './memory-form.tsx';
import { href } from './route.ts';
import type { Filters } from './use-memories.ts';

/** What can be done with a memory; undefined: the backend or nobody can. */
export interface RowActions {
  readonly select: (memory: Memory) => void;
  readonly edit: ((memory: Memory) => void) | undefined;
  readonly remove: ((memory: Memory) => void) | undefined;
}

interface MemoryRowProps {
  readonly memory: Memory;
  readonly index: number;
  /** The result of `placeOf`. */
  readonly place: object;
  readonly filters: Filters;
  readonly state: { readonly selected: boolean; readonly editing: boolean; readonly leaving: boolean };
  readonly replaced: ReadonlySet<string>;
  readonly actions: RowActions;
  readonly onSaved: (memory: Memory) => void;
  readonly onCancel: () => void;
}

/** One memory of the list, or the form that changes it. */
export function MemoryRow({
  memory,
  index,
  place,
  filters,
  state,
  replaced,
  actions,
  onSaved,
  onCancel,
}: MemoryRowProps) {
  const { id, content } = memory;
  const { user } = filters;
  const name = content.slice(0, 60);
  if (state.editing) {
    return (
      <li class="row open" {...place}>
        <MemoryForm user={user} memory={memory} onSaved={onSaved} onCancel={onCancel} />
      </li>
    );
  }
  return (
    <li class={state.leaving ? 'row leaving' : 'row'} {...place}>
      <input
        type="checkbox"
        checked={state.selected}
        onChange={() => actions.select(memory)}
        aria-label={`Select: ${name}`}
      />
      <div class="text">
        <a data-row={index} href={href('memory', { id, user })} dir="auto">
          {content.slice(0, 400)}
        </a>
        <small>
          <Marks memory={memory} replaced={replaced} />
          <Time of={memory.created_at} />
          {memory.scope && <span class="scope">{memory.scope}</span>}
          {memory.tags?.map((tag) => (
            <a key={tag} class="tag" href={href('memories', { ...filters, tag })}>
              {tag}
            </a>
          ))}
          <Written memory={memory} />
        </small>
      </div>
      {actions.edit && (
        <button type="button" onClick={() => actions.edit?.(memory)} aria-label={`Edit: ${name}`}>
          Edit
        </button>
      )}
      {actions.remove && (
        <button type="button" onClick={() => actions.remove?.(memory)} aria-label={`Delete: ${name}`}>
          Delete
        </button>
      )}
    </li>
  );
}
