import {
  type Call,
  ERASED_USE,
  type IdempotencyKey,
  invalidRequest,
  type KeyClaim,
  type KeyUse,
  type Memory,
  type NewMemory,
  type Provider,
  unchangedEntry,
} from '#contract';
import { newRecord } from '#toolbox';

/** An idempotency key, with the digest of the request's input. Which kind of request it is, its method says. */
export type RequestKey = Omit<IdempotencyKey, 'kind'> & Pick<KeyUse, 'fingerprint'>;

/** Repeated adds of one kind (Decision 20). */
export const createRepeats = ({ keyUse, audit }: Provider, kind: IdempotencyKey['kind']) => ({
  /** The key as the provider stores it with the memories at these places. */
  claim: (key: RequestKey, what: Pick<KeyClaim, 'before' | 'places' | 'size'>): KeyClaim => ({ ...key, kind, ...what }),
  /** The earlier use of a key; undefined: there is none. Throws `invalid_request` if the input was another one. */
  async useOf(
    { caller, key, fingerprint }: RequestKey,
    inputs: readonly (NewMemory | undefined)[],
    call: Call,
  ): Promise<KeyUse | undefined> {
    const users = inputs.flatMap((input) => (input ? [input.user_id] : []));
    const use = await keyUse?.({ caller, kind, key, users }, call);
    if (!use || use.fingerprint === fingerprint) return use;
    if (use.fingerprint === ERASED_USE.fingerprint)
      throw invalidRequest('Idempotency-Key: what was added with this key was erased; to add it again, use a new one');
    throw invalidRequest('Idempotency-Key: this key was used for another memory; use a new one');
  },
  /**
   * What the earlier request answered for these inputs: its memories as they were then; undefined where it added none, or
   * there is no input. The content comes from the input, because the key keeps none.
   */
  async repeat(
    { added }: KeyUse,
    inputs: readonly (NewMemory | undefined)[],
    call: Call,
  ): Promise<(Memory | undefined)[]> {
    const memories = inputs.map((input, place) => {
      const identity = added[place];
      return input && identity ? newRecord(input, identity.embedding_model, identity) : undefined;
    });
    const entries = memories.flatMap((memory) => (memory ? [unchangedEntry('add', memory, call)] : []));
    if (entries.length > 0) await audit?.record(entries, call);
    return memories;
  },
});
