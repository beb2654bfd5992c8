import type { Call } from '#contract';
import { analyse } from './analyse.ts';
import { openThread } from './thread.ts';

/** In characters. Up to here the event loop is held for a few milliseconds at most; nearly all memories are shorter. */
const MAX_AT_ONCE = 4_096;

const thread = openThread<string, string>(
  '#analyse-worker',
  (cause) => new Error('the thread that analyses long texts died', { cause }),
);

/** What `analyse` answers; of a long text it is found out in another thread. */
export async function analyseLater(text: string, call: Call): Promise<string[]> {
  if (text.length <= MAX_AT_ONCE) return analyse(text);
  const terms = await thread.ask(text, call);
  return terms === '' ? [] : terms.split('\n');
}
