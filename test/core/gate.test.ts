import { expect, it } from 'vitest';
import { ANONYMOUS } from '../../src/core/grants.ts';
import { describe as document } from '../../src/verbs/capabilities.ts';
import { VERB_TABLE } from '../../src/verbs/index.ts';
import { call, openMemory } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { gateOn, recordingLog } from '../support/subject.ts';

const openGate = async () => {
  const store = storeOf(await openMemory());
  return { store, ...gateOn(store, recordingLog(), { rate_limit_per_minute: 60 }) };
};

it('a gate exposes the public facts of a store, and no access to memories', async () => {
  const { store, gate } = await openGate();
  expect(gate).toEqual({
    provider: 'memory',
    capabilities: store.capabilities,
    max_record_bytes: expect.any(Number),
    // Nothing manages and delivers them here.
    description: document({ ...store, webhooks: undefined }, 60),
    hasEtag: expect.any(Function),
    session: expect.any(Function),
    state: expect.any(Function),
    metrics: expect.any(Function),
    ping: expect.any(Function),
    feed: expect.any(Object),
  });
  await gate.ping(call);
});

it('creates the session of each caller once', async () => {
  const { gate } = await openGate();
  const bound = { ...ANONYMOUS, users: ['u'] };
  expect(gate.session(bound, 'http')).toBe(gate.session(bound, 'http'));
  expect(gate.session({ ...bound }, 'http')).not.toBe(gate.session(bound, 'http'));
  const memory = { user_id: 'v', content: 'x' };
  await gate.session(ANONYMOUS, 'http').run(VERB_TABLE.add, { memory }, call);
  await expect(gate.session(bound, 'http').run(VERB_TABLE.add, { memory }, call)).rejects.toMatchObject({
    code: 'scope_denied',
  });
});
