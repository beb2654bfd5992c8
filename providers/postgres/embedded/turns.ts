import type { Exchange } from './client-messages.ts';

/** The engine, which has one session and does one thing at a time. */
export interface Session {
  /** Rejects only when the engine is broken. */
  run(bytes: Uint8Array, answer: (bytes: Uint8Array) => void): Promise<void>;
  inTransaction(): boolean;
}

/** Somebody who takes turns with others. */
export interface Seat {
  ask(exchange: Exchange): void;
  /** Drops what still waits. What is left unfinished is undone by the farewell. */
  leave(farewell: Exchange | undefined): void;
}

interface Place {
  waiting: Exchange[];
  answer: (bytes: Uint8Array) => void;
}

/**
 * Lends the session to one after the other, each for one exchange, and from the beginning of a transaction to its end:
 * what they do is as well apart as on sessions of their own.
 */
export function takeTurns(session: Session, broken: (error: unknown) => void) {
  /** Who has something to ask, first come first. */
  const queue = new Set<Place>();
  let holder: Place | undefined;
  let running = false;

  const next = (): Place | undefined => {
    const [first] = queue;
    const place = holder ?? first;
    return place && queue.delete(place) ? place : undefined;
  };
  const step = async (place: Place) => {
    const exchange = place.waiting.shift();
    if (!exchange) return;
    await session.run(exchange.bytes, place.answer);
    holder = exchange.unfinished || session.inTransaction() ? place : undefined;
    if (place.waiting.length > 0) queue.add(place);
  };
  const run = async () => {
    if (running) return;
    running = true;
    for (let place = next(); place; place = next()) await step(place);
    running = false;
  };
  const ask = (place: Place, exchange: Exchange) => {
    place.waiting.push(exchange);
    queue.add(place);
    run().catch(broken);
  };

  return (answer: (bytes: Uint8Array) => void): Seat => {
    const place: Place = { waiting: [], answer };
    return {
      ask: (exchange) => ask(place, exchange),
      leave(farewell) {
        place.answer = () => {};
        place.waiting = [];
        if (farewell) ask(place, farewell);
      },
    };
  };
}
