/** Run as a process of its own by local.test.ts: it never closes the embedder, so it ends only if nothing holds it. */
import { openEmbedder } from '../../src/embedding/open.ts';
import { callOf } from './observed-embedder.ts';

const log = { info() {}, warn() {}, error() {} };
const embedder = await openEmbedder({ kind: 'local', cache_size: 0, workers: 1 }, log);
void embedder.embed(['tea'], 'document', callOf()).then(([vector]) => console.log(vector?.length));
