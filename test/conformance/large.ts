import { freshUser, type Subject } from '../support/gateway.ts';
import type { WireMemory } from '../support/wire.ts';

/** Of the contents in one answer; one memory that is larger is sent alone. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export const bytesOf = (memories: readonly Pick<WireMemory, 'content'>[]): number =>
  memories.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0);

/** Memories of one user, together larger than one answer may be: each as large as the provider allows, or nearly a request. */
interface Large {
  readonly user_id: string;
  readonly count: number;
}
const added = new WeakMap<Subject, Promise<Large>>();

/** Adds them once for each subject. */
export function addLarge(subject: Subject): Promise<Large> {
  const large = added.get(subject) ?? add(subject);
  added.set(subject, large);
  return large;
}

async function add({ client, capabilities }: Subject): Promise<Large> {
  const most = capabilities.features.max_content_length;
  const content = most === null ? 'apple '.repeat(150_000) : 'apple '.concat('\u{1F34E}'.repeat(most - 6));
  const count = Math.ceil((1.2 * MAX_ANSWER_BYTES) / Buffer.byteLength(content));
  const user_id = freshUser();
  for (let i = 0; i < count; i++) await client.add({ user_id, content });
  return { user_id, count };
}
