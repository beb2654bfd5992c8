import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readTraceContext } from '../../src/telemetry/telemetry.ts';
import { headerOf, ID, SPAN, traceparents } from './traceparents.ts';

const read = (traceparent: string, tracestate?: string) => readTraceContext(headerOf({ traceparent, tracestate }));

test.for([
  ['recorded', `00-${ID}-${SPAN}-01`, `00-${ID}-${SPAN}-01`],
  ['not recorded', `00-${ID}-${SPAN}-00`, `00-${ID}-${SPAN}-00`],
  ['with flags that are not known', `00-${ID}-${SPAN}-ff`, `00-${ID}-${SPAN}-ff`],
  ['of a later version', `cc-${ID}-${SPAN}-01`, `00-${ID}-${SPAN}-01`],
  ['of a later version that says more', `cc-${ID}-${SPAN}-00-what-else`, `00-${ID}-${SPAN}-00`],
  ['of a later version with flags that are not known', `01-${ID}-${SPAN}-fe`, `00-${ID}-${SPAN}-00`],
])('a trace %s is passed on', ([, given, passed]) => {
  expect(read(given ?? '')).toEqual({ id: ID, headers: { traceparent: passed } });
});

test.for([
  ['nothing', ''],
  ['another version than there can be', `ff-${ID}-${SPAN}-01`],
  ['upper case', `00-${ID.toUpperCase()}-${SPAN}-01`],
  ['no trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['no span', `00-${ID}-${'0'.repeat(16)}-01`],
  ['more than version 00 says', `00-${ID}-${SPAN}-01-more`],
  ['a trailing dash', `00-${ID}-${SPAN}-01-`],
  ['more without a dash', `cc-${ID}-${SPAN}-01.more`],
  ['a short trace', `00-${ID.slice(1)}-${SPAN}-01`],
  ['a long span', `00-${ID}-${SPAN}0-01`],
  ['no flags', `00-${ID}-${SPAN}`],
  ['two at once, as a server joins them', `00-${ID}-${SPAN}-01, 00-${ID}-${SPAN}-01`],
])('%s is no trace', ([, given]) => {
  expect(read(given ?? '')).toBeUndefined();
});

test('the state of other vendors goes with a trace, as long as every service has to take it', () => {
  const state = `a=${'x'.repeat(510)}`;
  expect(read(`00-${ID}-${SPAN}-01`, state)?.headers.tracestate).toBe(state);
  for (const dropped of [`${state}x`, '']) {
    expect(read(`00-${ID}-${SPAN}-01`, dropped)?.headers).not.toHaveProperty('tracestate');
  }
  expect(read('broken', state)).toBeUndefined();
});

test('the same headers name a trace here and for OpenTelemetry', () => {
  const known = { get: (carrier: string) => carrier, keys: () => [] };
  const propagator = new W3CTraceContextPropagator();
  fc.assert(
    fc.property(traceparents, (given) => {
      const theirs = trace.getSpanContext(propagator.extract(ROOT_CONTEXT, given, known));
      const ours = read(given);
      expect(ours?.id).toBe(theirs?.traceId);
      if (!theirs) return;
      const passed = trace.getSpanContext(propagator.extract(ROOT_CONTEXT, ours?.headers.traceparent ?? '', known));
      expect(passed).toMatchObject({ traceId: theirs.traceId, spanId: theirs.spanId });
      expect((passed?.traceFlags ?? 0) & 1).toBe(theirs.traceFlags & 1);
    }),
    { numRuns: 2_000 },
  );
});
