import { Hono } from 'hono';
import { z } from 'zod';
import { FAULT_KINDS, type Faults } from './faults.ts';
import { type Index, namespaceName, OPERATION_NAMES, type OperationName } from './operations.ts';

/** A request as it was recorded. */
export interface Call {
  readonly operation: OperationName;
  readonly method: string;
  /** With its query string. */
  readonly path: string;
  /** Of the answer; 0: none (yet). */
  status: number;
  /** Of the trace it is part of, where it is one's. */
  readonly traceparent?: string;
  /** The JSON body, where there was one. */
  readonly body?: unknown;
}

const MOST = 50_000;

/** What was asked and what was wrong about it. */
export interface Records {
  record(call: Call): Call;
  /** In order of arrival. Throws when there were too many to keep them all. */
  calls(): readonly Call[];
  resetCalls(): void;
  readonly violations: string[];
}

export function createRecords(): Records {
  let calls: Call[] = [];
  let dropped = false;
  return {
    violations: [],
    record: (call) => {
      if (calls.length >= MOST) {
        calls = [];
        dropped = true;
      }
      calls.push(call);
      return call;
    },
    calls: () => {
      if (dropped) throw new Error(`more than ${MOST} calls since the last reset`);
      return calls;
    },
    resetCalls: () => {
      calls = [];
      dropped = false;
    },
  };
}

const lagSchema = z.strictObject({
  ms: z.number().min(0).optional(),
  writes: z.int().min(0).optional(),
  held: z.boolean().optional(),
  fetchMs: z.number().min(0).optional(),
});

const faultSchema = z.strictObject({
  operation: z.enum(OPERATION_NAMES).optional(),
  kind: z.enum(FAULT_KINDS),
  retryAfter: z.string().optional(),
  times: z.int().min(0).optional(),
});

/** What tests turn and look at; no part of the service. */
export function controlApp(index: Index, faults: Faults, records: Records): Hono {
  const { store } = index;
  const app = new Hono();
  app.onError((error, c) => c.text(error.message, 400));
  app.put('/lag', async (c) => {
    store.lag(lagSchema.parse(await c.req.json()));
    return c.json({});
  });
  app.post('/settle', (c) => {
    store.settle();
    return c.json({});
  });
  app.post('/faults', async (c) => {
    faults.add(faultSchema.parse(await c.req.json()));
    return c.json({});
  });
  app.delete('/faults', (c) => {
    faults.clear();
    return c.json({});
  });
  app.get('/calls', (c) => c.json(records.calls()));
  app.delete('/calls', (c) => {
    records.resetCalls();
    return c.json({});
  });
  app.get('/violations', (c) => c.json(records.violations));
  app.get('/namespaces', (c) => c.json(store.existing().map(({ name }) => name)));
  app.get('/records', (c) => {
    const whole = store.find(namespaceName(c.req.query('namespace'), index))?.whole;
    const all = [...(whole?.entries() ?? [])].map(([id, { values, metadata }]) => [
      id,
      { values: [...values], ...(metadata && { metadata }) },
    ]);
    return c.json(Object.fromEntries(all));
  });
  return app;
}
