import type { Memory } from '../../clients/typescript/src/index.ts';
import { Chips, Marks, Time, Written } from './format.tsx';
import { Icon } from './icon.tsx';
import { MemoryForm } from './memory-form.tsx';
import { go, href } from './route.ts';
import { Menu } from './ui.tsx';
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
  /** Found, but far below the best. */
  readonly isLess: boolean | undefined;
  readonly replaced: ReadonlySet<string>;
  readonly actions: RowActions;
  readonly onSaved: (memory: Memory) => void;
  readonly onCancel: () => void;
}

/** One memory of the list, or the form that changes it. */
export function MemoryRow({ memory, place, filters, state, actions, onSaved, onCancel, ...rest }: MemoryRowProps) {
  const { id, content } = memory;
  const { user } = filters;
  const { select, edit, remove } = actions;
  const name = content.slice(0, 60);
  if (state.editing) {
    return (
      <li class="row open" {...place}>
        <MemoryForm user={user} memory={memory} onSaved={onSaved} onCancel={onCancel} />
      </li>
    );
  }
  return (
    <li class={`row${state.leaving ? ' leaving' : ''}${rest.isLess ? ' less' : ''}`} {...place}>
      <input type="checkbox" checked={state.selected} onChange={() => select(memory)} aria-label={`Select: ${name}`} />
      <div class="text">
        <a data-row={rest.index} href={href('memory', { id, user })} dir="auto">
          {content.slice(0, 400)}
        </a>
        <small>
          <Marks memory={memory} replaced={rest.replaced} />
          <Chips memory={memory} to={(changed) => href('memories', { ...filters, ...changed })} />
          <Written memory={memory} />
        </small>
      </div>
      <Time of={memory.created_at} />
      <div class="row-actions">
        {edit && (
          <button type="button" class="quiet" onClick={() => edit(memory)} aria-label={`Edit: ${name}`}>
            <Icon name="edit" />
          </button>
        )}
        {remove && (
          <button type="button" class="quiet" onClick={() => remove(memory)} aria-label={`Delete: ${name}`}>
            <Icon name="remove" />
          </button>
        )}
        <Menu
          label={`More: ${name}`}
          items={[
            { text: 'Open', icon: 'memories', run: () => go('memory', { id, user }) },
            ...(edit ? [{ text: 'Edit', icon: 'edit' as const, run: () => edit(memory) }] : []),
            { text: 'Copy the text', icon: 'copy', run: () => void navigator.clipboard?.writeText(content) },
            { text: 'Copy the id', icon: 'copy', run: () => void navigator.clipboard?.writeText(id) },
            ...(remove ? [{ text: 'Delete', icon: 'remove' as const, run: () => remove(memory) }] : []),
          ]}
        />
      </div>
    </li>
  );
}
