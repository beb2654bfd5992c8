import { Hono } from 'hono';
import type { Call } from '#contract';
import { changes } from '../verbs/changes.ts';
import type { Gate } from '../verbs/gate.ts';
import type { Env } from './request.ts';
import { inputReader } from './verb-routes.ts';

/** Seconds between two heartbeats, so that proxies keep the connection. */
const HEARTBEAT = 15;

type Answer = Awaited<ReturnType<typeof changes.run>>;

/**
 * `GET /changes` as server-sent events, for clients that ask for them (Decision 51). Each event has the cursor after its change as its
 * id. The stream ends when the caller may no longer read, the backend fails, or the gateway stops: the client then asks again with
 * the id, and gets the error if there is one.
 */
export function changeStream({ feed }: Pick<Gate, 'feed'>): Hono<Env> {
  const read = inputReader(changes, 0);
  return new Hono<Env>().get(changes.path, async (c, next) => {
    if (!c.req.header('accept')?.includes('text/event-stream')) return next();
    const call = c.get('call');
    const input = (await read(c)) as Record<string, unknown>;
    // One call for all reads: they leave one audit entry. What each reserves is given back at once, not when the stream ends.
    const own = call.with({ consistency: undefined, trace: undefined, deadline: undefined });
    const ask = (query: object): Promise<Answer> => c.get('session').run(changes, { ...input, ...query }, own);
    const first = await ask({ wait: 0 });
    call.isStream = true;
    return c.body(streamOf(first, ask, { call, feed }), 200, {
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
    });
  });
}

/** Asks for more when the client has taken what was sent. */
function streamOf(
  first: Answer,
  ask: (query: object) => Promise<Answer>,
  { call, feed }: Pick<Gate, 'feed'> & { readonly call: Call },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let answer: Answer | undefined = first;
  let position = first.next_cursor;
  return new ReadableStream({
    async pull(controller) {
      try {
        answer ??= await call.idle(ask({ after: position, last_event_id: undefined, wait: HEARTBEAT }));
        controller.enqueue(encoder.encode(eventsOf(answer)));
        position = answer.next_cursor;
        answer = undefined;
        if (!feed.draining) return;
      } catch {
        // The client gets the error when it asks again.
      }
      if (!call.aborted) controller.close();
    },
  });
}

/** The last event has no data: it moves the position of the client on, past changes that it may not read, and is the heartbeat. */
const eventsOf = ({ changes, next_cursor }: Answer): string =>
  `${changes.map((change) => `id: ${change.cursor}\ndata: ${JSON.stringify(change)}\n\n`).join('')}:\nid: ${next_cursor}\n\n`;
