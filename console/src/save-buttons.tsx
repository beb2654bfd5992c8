import { useState } from 'preact/hooks';
import type { Memory } from '../../clients/typescript/src/index.ts';
import { count } from './format.tsx';
import { Failure } from './load.tsx';
import { type Format, saveFile } from './save-file.ts';
import { useSession } from './session.ts';
import { type Filters, toListQuery } from './use-memories.ts';

/** Memories in one page of the list that is saved. */
const PAGE = 500;

interface SaveButtonsProps {
  readonly filters: Filters;
  readonly found: readonly Memory[];
  readonly chosen: readonly Memory[];
}

/** Saves what is selected, else everything that the filters leave: of a list all pages, of a search what it found. */
export function SaveButtons({ filters, found, chosen }: SaveButtonsProps) {
  const { client } = useSession();
  const [state, setState] = useState<{ done: number; error?: unknown }>();
  const running = state !== undefined && state.error === undefined;
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
  return (
    <>
      <button type="button" onClick={() => save('ndjson')} disabled={running}>
        Save {chosen.length > 0 ? 'selected' : 'all'} as NDJSON
      </button>
      <button type="button" onClick={() => save('csv')} disabled={running}>
        as CSV
      </button>
      {running && <output>{count(state.done)} read…</output>}
      {state?.error !== undefined && <Failure error={state.error} />}
    </>
  );
}
