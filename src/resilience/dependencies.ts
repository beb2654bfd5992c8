import type { Call, Log } from '#contract';
import type { Around, BreakerState, Telemetry } from '../core/telemetry.ts';
import { createDependency, type Dependency, type ResilienceOptions } from './dependency.ts';

/** All that the gateway depends on. */
export interface Dependencies {
  /** What is put around every call to a new one: it is timed and traced, tried again, and refused while that is down. */
  protect(name: string, probe: (call: Call) => Promise<unknown>): Around;
  /** Of all, by name. */
  states(): ReadonlyMap<string, BreakerState>;
  close(): void;
}

export function createDependencies(options: ResilienceOptions, telemetry: Telemetry, log: Log): Dependencies {
  const all: Dependency[] = [];
  return {
    protect(name, probe) {
      const dependency = createDependency({ ...options, name, probe, log });
      all.push(dependency);
      return (operation, call, work) =>
        telemetry.call(operation, call, (own) => dependency.run(operation, own, () => work(own)));
    },
    states: () => new Map(all.map(({ name, state }) => [name, state])),
    close() {
      for (const { close } of all) close();
    },
  };
}
