import { createDocument, type oas31 } from 'zod-openapi';
import { OMP_VERSION } from '../core/describe.ts';
import { gatewayPaths } from './openapi/gateway.ts';
import { memoryPaths } from './openapi/memories.ts';
import { override, polish } from './openapi/render.ts';

const DESCRIPTION = `Stores, retrieves and searches memories: short text facts about a user.

Which verbs and features there are depends on the provider behind the gateway: \`GET /capabilities\` tells. All errors
come in one envelope; branch on \`error.code\`. Text holds no NUL and no lone surrogates; characters are counted as
Unicode code points.

**Who may call.** A gateway without keys is open: it needs no credential. Otherwise every path but \`/capabilities\`,
\`/healthz\`, \`/livez\`, \`/readyz\` and this description, unknown paths too, answers 401 without a good key or token.

**Who may do what.** A key or token reaches all users or some, and its grants allow \`read\` (get, list, search, context,
audit), \`write\` (add, update) and \`delete\`, each everywhere or in some scopes. By id, a memory of a user out of reach
answers 404, exactly as an unknown id does; a memory of a user in reach, but outside the grants, answers 403. Update
needs \`write\` for the old and for the new scope, and answers with the memory even where \`read\` is not granted. List,
search, context and audit return what lies within the grants; they answer 403 for a user out of reach, and for a scope
that cannot match anything granted.`;

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: "A key of the gateway, or the identity provider's token (JWT).",
  },
  apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'The same, for clients that send it here.' },
} as const;

/** Either, or none while the gateway is open. */
const security: oas31.SecurityRequirementObject[] = [{ bearer: [] }, { apiKey: [] }, {}];

/** The OpenAPI 3.1 description of the gateway, made from the schemas that validate its requests. */
export const openApiDocument = (): oas31.OpenAPIObject =>
  polish(
    createDocument(
      {
        openapi: '3.1.1',
        info: { title: 'Open Memory Protocol gateway', version: OMP_VERSION, description: DESCRIPTION },
        // Relative to the document, so that a prefix that a proxy takes off is kept.
        servers: [{ url: '.' }],
        security,
        tags: [
          { name: 'memories', description: 'The verbs of the protocol.' },
          { name: 'gateway', description: 'What the gateway says about itself, to everybody.' },
        ],
        paths: { ...memoryPaths, ...gatewayPaths },
        components: { securitySchemes },
      },
      { override },
    ),
  );
