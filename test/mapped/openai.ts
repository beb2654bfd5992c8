import { type Answer, embeddingsServer, sendJson } from '../embedding/embeddings-server.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call } from '../support/requests.ts';

/** Vector lengths of the models that the documentation names, as their makers publish them. */
const DIMENSIONS: Readonly<Record<string, number>> = {
  'text-embedding-3-small': 1536,
  'text-embedding-3-large': 3072,
  'text-embedding-ada-002': 1536,
  'sentence-transformers/all-mpnet-base-v2': 768,
  'all-MiniLM-L6-v2': 384,
  'Supabase/gte-small': 384,
  'nomic-embed-text': 768,
};

/** Of the same length for equal texts: similar spelling comes out near. */
export const vectorOf = async (text: string, dimensions: number): Promise<Float32Array> =>
  (await hashingEmbedder(dimensions).embed([text], 'document', call))[0] as Float32Array;

const answer: Answer = async ({ model, input, encoding_format, dimensions = DIMENSIONS[model] }, response) => {
  if (dimensions === undefined) throw new Error(`no length is known for the model ${model}`);
  const data = await Promise.all(
    // One text may come by itself.
    [input].flat().map(async (text, index) => {
      const vector = await vectorOf(text, dimensions);
      const embedding = encoding_format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector];
      return { object: 'embedding', index, embedding };
    }),
  );
  sendJson(response, 200, { object: 'list', model, data, usage: { prompt_tokens: 1, total_tokens: 1 } });
};

/** An embedding service on loopback with OpenAI's interface; its vectors are those of `vectorOf`. */
export async function openAiServer() {
  const server = await embeddingsServer();
  server.answer = answer;
  return server;
}
