import { expect, it } from 'vitest';
import { openAuditQueue } from '../../src/core/audit-queue.ts';
import { ANONYMOUS } from '../../src/core/principal.ts';
import { describe as document } from '../../src/verbs/capabilities.ts';
import { createGate } from '../../src/verbs/gate.ts';
import { call, memoryOf, openMemory } from '../support/requests.ts';
import { storeOf } from '../support/stores.ts';
import { recordingLog } from '../support/subject.ts';

const openGate = async () => {
  const provider = storeOf(await openMemory());
  const auditQueue = openAuditQueue({ audit: undefined, record: 'all', log: recordingLog() });
  return { provider, gate: createGate({ provider, auditQueue, rate_limit_per_minute: 60 }) };
};

it('a gate exposes the public facts of a provider, and no access to memories', async () => {
  const { provider, gate } = await openGate();
  expect(gate).toEqual({
    provider: 'memory',
    capabilities: provider.capabilities,
    description: document(provider, 60),
    verbs: expect.any(Function),
    ping: expect.any(Function),
  });
  await gate.ping(call);
});

it('creates the verbs of each caller once', async () => {
  const { gate } = await openGate();
  const bound = { ...ANONYMOUS, users: ['u'] };
  expect(gate.verbs(bound)).toBe(gate.verbs(bound));
  expect(gate.verbs({ ...bound })).not.toBe(gate.verbs(bound));
  await gate.verbs(ANONYMOUS).add?.({ input: memoryOf('v', 'x'), vector: undefined }, call);
  await expect(gate.verbs(bound).add?.({ input: memoryOf('v', 'x'), vector: undefined }, call)).rejects.toMatchObject({
    code: 'scope_denied',
  });
});
