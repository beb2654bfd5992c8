import { useState } from 'preact/hooks';
import type { Memory } from '../../clients/typescript/src/index.ts';
import { count } from './format.tsx';
import { Failure } from './load.tsx';
import { type Format, saveFile } from './save-file.ts';
import { useSession } from './session.ts';
import type { MenuItem } from './ui.tsx';
import { type Filters, toListQuery } from './use-memories.ts';

/** Memories in one page of the list that is saved. */
const PAGE = 500;

/** Saves what is selected, else everything that the filters leave: of a list all pages, of a search what it found. */
export function useSaving(filters: Filters, found: readonly Memory[], chosen: readonly Memory[]) {
  const { client } = useSession();
  const [state, setState] = useState<{ done: number; error?: unknown }>();
  const save = async (format: Format) => {
    if (chosen.length > 0 || filters.q) return saveFile(format, filters.user, chosen.length > 0 ? chosen : found);
    const all: Memory[] = [];
    setState({ done: 0 });
    try {
      for await (const memory of client.memories.list({ ...toListQuery(filters), limit: PAGE })) {
        if (all.push(memory) % PAGE === 0) setState({ done: all.length });
      }
      saveFile(format, filters.user, all);
      setState(undefined);
    } catch (error) {
      setState({ done: all.length, error });
    }
  };
  const what = chosen.length > 0 ? 'selected' : 'all';
  const items: readonly MenuItem[] = [
    { text: `Save ${what} as NDJSON`, icon: 'save', run: () => void save('ndjson') },
    { text: `Save ${what} as CSV`, icon: 'save', run: () => void save('csv') },
  ];
  const status =
    state && (state.error === undefined ? <span>{count(state.done)} read…</span> : <Failure error={state.error} />);
  return { items, status };
}
