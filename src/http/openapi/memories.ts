import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { CreateBody, ListParameters, PatchBody, SearchParameters } from '../schemas/requests.ts';
import { Memory, MemoryPage, SearchResults } from '../schemas/responses.ts';
import * as example from './examples.ts';
import { IdempotencyKeyParameter, UserIdParameter } from './headers.ts';
import { verb } from './operation.ts';

const byId = {
  path: z.object({ id: z.string().meta({ description: 'Id of the memory.' }) }),
  headers: { 'X-User-Id': UserIdParameter },
};

/** SPEC, Endpoints: the verbs on memories. */
export const memoryPaths: ZodOpenApiPathsObject = {
  '/memories': {
    post: verb({
      id: 'addMemory',
      summary: 'Create a memory',
      description: 'Optional fields given as null count as omitted. Unknown fields are ignored.',
      headers: { 'Idempotency-Key': IdempotencyKeyParameter },
      body: { schema: CreateBody, example: example.newMemory },
      success: { status: 201, description: 'The created memory.', body: { schema: Memory, example: example.memory } },
      errors: ['invalid_request', 'unsupported_capability', 'payload_too_large'],
    }),
    get: verb({
      id: 'listMemories',
      summary: "List a user's memories",
      description: 'Newest first. Pass each `next_cursor` as `cursor`, with the same filters, until it is null.',
      query: ListParameters,
      success: { status: 200, description: 'One page.', body: { schema: MemoryPage, example: example.memoryPage } },
      errors: ['invalid_request', 'unsupported_capability'],
    }),
  },
  '/memories/search': {
    get: verb({
      id: 'searchMemories',
      summary: "Search a user's memories",
      description: 'Ranked by meaning, by keywords, or both, as `features` of `GET /capabilities` tells.',
      query: SearchParameters,
      success: {
        status: 200,
        description: 'Results.',
        body: { schema: SearchResults, example: example.searchResults },
      },
      errors: ['invalid_request', 'unsupported_capability'],
    }),
  },
  '/memories/{id}': {
    get: verb({
      id: 'getMemory',
      summary: 'Read one memory',
      ...byId,
      success: { status: 200, description: 'The memory.', body: { schema: Memory, example: example.memory } },
      errors: ['not_found'],
    }),
    patch: verb({
      id: 'updateMemory',
      summary: 'Update fields of a memory',
      description: '`tags` and `supersedes` replace the whole list. Only `valid_to` and `x-` keys may be null.',
      ...byId,
      body: { schema: PatchBody, example: example.memoryPatch },
      success: {
        status: 200,
        description: 'The full memory.',
        body: { schema: Memory, example: example.patchedMemory },
      },
      errors: ['invalid_request', 'unsupported_capability', 'not_found', 'payload_too_large'],
    }),
    delete: verb({
      id: 'deleteMemory',
      summary: 'Delete a memory for good',
      description: 'To keep the history, add a memory that names this one in `supersedes`.',
      ...byId,
      success: { status: 204, description: 'Deleted.' },
      errors: ['unsupported_capability', 'not_found'],
    }),
  },
};
