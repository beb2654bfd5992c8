import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { CreateBody, ListParameters, PatchBody, SearchParameters } from '../schemas/requests.ts';
import { Memory, MemoryPage, SearchResults } from '../schemas/responses.ts';
import * as example from './examples.ts';
import { UserIdParameter } from './headers.ts';
import { operation } from './operation.ts';

const byId = {
  path: z.object({ id: z.string().meta({ description: 'Id of the memory.' }) }),
  headers: { 'X-User-Id': UserIdParameter },
};
const tag = 'memories';

/** SPEC, Endpoints: the verbs on memories. */
export const memoryPaths: ZodOpenApiPathsObject = {
  '/memories': {
    post: operation({
      id: 'addMemory',
      tag,
      summary: 'Create a memory',
      description: 'Optional fields given as null count as omitted. Unknown fields are ignored.',
      body: { schema: CreateBody, example: example.newMemory },
      success: { status: 201, description: 'The created memory.', body: { schema: Memory, example: example.memory } },
      errors: ['invalid_request', 'payload_too_large', 'rate_limited', 'provider_error'],
    }),
    get: operation({
      id: 'listMemories',
      tag,
      summary: "List a user's memories",
      description: 'Newest first. Pass each `next_cursor` as `cursor`, with the same filters, until it is null.',
      query: ListParameters,
      success: { status: 200, description: 'One page.', body: { schema: MemoryPage, example: example.memoryPage } },
      errors: ['invalid_request', 'unsupported_capability', 'rate_limited', 'provider_error'],
    }),
  },
  '/memories/search': {
    get: operation({
      id: 'searchMemories',
      tag,
      summary: "Search a user's memories",
      description: 'Ranked by meaning, by keywords, or both, as `features` of `GET /capabilities` tells.',
      query: SearchParameters,
      success: {
        status: 200,
        description: 'Results.',
        body: { schema: SearchResults, example: example.searchResults },
      },
      errors: ['invalid_request', 'unsupported_capability', 'rate_limited', 'provider_error'],
    }),
  },
  '/memories/{id}': {
    get: operation({
      id: 'getMemory',
      tag,
      summary: 'Read one memory',
      ...byId,
      success: { status: 200, description: 'The memory.', body: { schema: Memory, example: example.memory } },
      errors: ['not_found', 'rate_limited', 'provider_error'],
    }),
    patch: operation({
      id: 'updateMemory',
      tag,
      summary: 'Update fields of a memory',
      description: '`tags` and `supersedes` replace the whole list. Only `valid_to` may be null.',
      ...byId,
      body: { schema: PatchBody, example: example.memoryPatch },
      success: {
        status: 200,
        description: 'The full memory.',
        body: { schema: Memory, example: example.patchedMemory },
      },
      errors: [
        'invalid_request',
        'unsupported_capability',
        'not_found',
        'payload_too_large',
        'rate_limited',
        'provider_error',
      ],
    }),
    delete: operation({
      id: 'deleteMemory',
      tag,
      summary: 'Delete a memory for good',
      description: 'To keep the history, add a memory that names this one in `supersedes`.',
      ...byId,
      success: { status: 204, description: 'Deleted.' },
      errors: ['unsupported_capability', 'not_found', 'rate_limited', 'provider_error'],
    }),
  },
};
