import { describe, expect, it } from 'vitest';
import { Call, type CallFields, GATEWAY } from '#contract';

const FIELDS: CallFields = {
  requestId: 'r1',
  caller: { id: 'key:1', app: 'editor' },
  consistency: { token: 't', answer() {}, behind() {} },
  trace: { id: '0'.repeat(32), headers: () => ({}) },
  deadline: 5_000,
};
const outer = (from?: AbortSignal) => new Call(FIELDS.requestId, FIELDS.caller, from, FIELDS);

describe('a call that is made from another one', () => {
  it('shares every field that it has not of its own', () => {
    const fields = Object.entries(outer());
    expect(Object.fromEntries(fields)).toEqual(FIELDS);
    const own = outer().with({});
    for (const [name, value] of fields) expect(own, name).toHaveProperty(name, value);
    for (const name of Object.keys(FIELDS) as (keyof CallFields)[]) {
      const mine = name === 'caller' ? GATEWAY : undefined;
      expect(outer().with({ ...FIELDS, [name]: mine })[name], name).toBe(mine);
    }
  });

  it('is aborted with it', () => {
    const call = outer();
    const inner = call.with({ trace: undefined }).with({});
    call.abort(new Error('gone'));
    expect(inner.aborted).toBe(true);
    expect(inner.signal.reason).toEqual(new Error('gone'));
  });

  it('is not aborted with it, and has no deadline, if something else aborts it', () => {
    const call = outer();
    const stop = new AbortController();
    const byItself = call.with({ abortedBy: 'itself' });
    const bySignal = call.with({ abortedBy: stop.signal, deadline: 7_000 });
    call.abort(new Error('gone'));
    expect([byItself.aborted, bySignal.aborted]).toEqual([false, false]);
    expect([byItself.deadline, bySignal.deadline]).toEqual([undefined, 7_000]);
    stop.abort();
    byItself.abort(new Error('late'));
    expect([byItself.aborted, bySignal.aborted]).toEqual([true, true]);
  });
});
