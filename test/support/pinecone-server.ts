import { type Pinecone, type PineconeOptions, startPinecone } from '../pinecone-server/start.ts';
import { openSubject, type Subject, type SubjectOptions, UNHURRIED_PINECONE } from './subject.ts';

export interface PineconeSubject extends Subject {
  readonly pinecone: Pinecone;
}

/** A Pinecone for `providerTests`. */
export async function pineconeBackend(server: PineconeOptions = {}, options: object = {}) {
  const pinecone = await startPinecone(server);
  return {
    options: { ...UNHURRIED_PINECONE, api_key: 'test', index_host: pinecone.url, ...options },
    pinecone,
    settle: pinecone.settle,
    close: pinecone.close,
  };
}

/**
 * The gateway on a Pinecone of its own, which ends when the subject closes. Closing rejects when anything that went over
 * the wire was not as Pinecone's description has it.
 */
export async function openPineconeSubject(
  server: PineconeOptions = {},
  options: object = {},
  more: Partial<Omit<SubjectOptions, 'provider'>> = {},
): Promise<PineconeSubject> {
  const { pinecone, ...backend } = await pineconeBackend(server, options);
  try {
    const subject = await openSubject({ ...more, provider: 'pinecone', options: backend.options });
    return {
      ...subject,
      pinecone,
      close: async () => {
        try {
          await subject.close();
        } finally {
          await pinecone.close();
        }
      },
    };
  } catch (error) {
    await pinecone.close();
    throw error;
  }
}
