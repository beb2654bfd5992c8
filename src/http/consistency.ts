import type { Context } from 'hono';
import type { Consistency } from '#contract';

/** What a client sends back with its next request, to whichever replica (Decision 23). */
export const CONSISTENCY_TOKEN = 'X-Consistency-Token';

/** On an answer that may lack what the token of the request names. */
export const CONSISTENCY = 'X-Consistency';

/** Longer ones were never ours. */
const LONGEST_TOKEN = 1_024;

export function consistencyOf(c: Context): Consistency {
  const token = c.req.header(CONSISTENCY_TOKEN);
  // Work may go on after its request was answered with an error, and then has nobody to tell.
  const tell = (name: string, value: string) => {
    if (!c.finalized) c.header(name, value);
  };
  return {
    token: token !== undefined && token.length <= LONGEST_TOKEN ? token : undefined,
    answer: (given) => tell(CONSISTENCY_TOKEN, given),
    behind: () => tell(CONSISTENCY, 'behind'),
  };
}
