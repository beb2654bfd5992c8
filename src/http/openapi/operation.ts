import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import type { ErrorCode } from '#contract';
import { failures } from './failures.ts';
import { RequestIdHeader, RequestIdParameter } from './headers.ts';

/** A JSON body and how one looks. */
interface Body {
  readonly schema: z.ZodType;
  readonly example?: object;
}

interface Verb {
  readonly id: string;
  readonly tag: 'memories' | 'gateway';
  readonly summary: string;
  readonly description?: string;
  readonly path?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  readonly body?: Body;
  readonly success: { readonly status: 200 | 201 | 204; readonly description: string; readonly body?: Body };
  readonly errors: readonly ErrorCode[];
}

/** One endpoint, with what all of them share. */
export const operation = (verb: Verb): ZodOpenApiOperationObject => ({
  operationId: verb.id,
  tags: [verb.tag],
  summary: verb.summary,
  ...(verb.description !== undefined && { description: verb.description }),
  requestParams: {
    ...(verb.path && { path: verb.path }),
    ...(verb.query && { query: verb.query }),
    header: z.object({ ...verb.headers, 'x-request-id': RequestIdParameter }),
  },
  ...(verb.body && { requestBody: { required: true, content: json(verb.body) } }),
  responses: {
    [verb.success.status]: {
      description: verb.success.description,
      headers: z.object({ 'x-request-id': RequestIdHeader }),
      ...(verb.success.body && { content: json(verb.success.body) }),
    },
    ...failures(verb.errors),
  },
});

const json = (body: Body) => ({ 'application/json': { ...body } });
