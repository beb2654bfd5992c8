import { createDocument, type oas31 } from 'zod-openapi';
import { OMP_VERSION } from '../core/describe.ts';
import { gatewayPaths } from './openapi/gateway.ts';
import { memoryPaths } from './openapi/memories.ts';
import { override, polish } from './openapi/render.ts';

const DESCRIPTION = `Stores, retrieves and searches memories: short text facts about a user.

Which verbs and features there are depends on the provider behind the gateway: \`GET /capabilities\` tells. All errors
come in one envelope; branch on \`error.code\`. Text holds no NUL and no lone surrogates; characters are counted as
Unicode code points.`;

/** The OpenAPI 3.1 description of the gateway, made from the schemas that validate its requests. */
export const openApiDocument = (): oas31.OpenAPIObject =>
  polish(
    createDocument(
      {
        openapi: '3.1.1',
        info: { title: 'Open Memory Protocol gateway', version: OMP_VERSION, description: DESCRIPTION },
        servers: [{ url: '/' }],
        tags: [
          { name: 'memories', description: 'The verbs of the protocol.' },
          { name: 'gateway', description: 'What the gateway says about itself.' },
        ],
        paths: { ...memoryPaths, ...gatewayPaths },
      },
      { override },
    ),
  );
