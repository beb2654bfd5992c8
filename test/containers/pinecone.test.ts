import { afterAll, beforeAll, describe } from 'vitest';
import { docker, folderThere, project } from './engine.ts';
import { gatewaySuite } from './gateway.suite.ts';
import { standIn } from './images.ts';

const omp = project();
beforeAll(async () => {
  await docker('build', '--quiet', '--target', 'build', '--tag', 'local/omp-gateway-build', folderThere('sources'));
  await standIn('pinecone');
});
afterAll(omp.end);

describe("the gateway in front of Pinecone's emulator", () => gatewaySuite(omp, 'pinecone-gateway', false));
