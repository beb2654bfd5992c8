import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import type { ErrorCode } from '#contract';
import { answerHeaders, failures } from './failures.ts';
import { ConsistencyTokenParameter, RequestIdParameter } from './headers.ts';

/** A body, JSON unless it says otherwise, and how one looks. */
interface Body {
  readonly type?: 'text/html';
  readonly schema: z.ZodType;
  readonly example?: object;
}

interface Operation {
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly path?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  readonly body?: Body;
  readonly success: { readonly status: 200 | 201 | 204; readonly description: string; readonly body?: Body };
  /** An answer that is no success and no error of the protocol either. */
  readonly otherwise?: { readonly status: 503; readonly description: string; readonly body: Body };
  readonly errors: readonly ErrorCode[];
  /** Default: as with every verb on memories, what a client wrote through another replica is waited for. */
  readonly consistent?: boolean;
}

/** A verb of the protocol: for callers who may, with the errors that any of them may answer. */
export const verb = ({ errors, consistent = true, ...rest }: Operation): ZodOpenApiOperationObject => ({
  ...operation(
    {
      ...rest,
      headers: { ...rest.headers, ...(consistent && { 'X-Consistency-Token': ConsistencyTokenParameter }) },
      errors: [...errors, 'unauthorized', 'scope_denied', 'rate_limited', 'provider_error'],
    },
    consistent,
  ),
  tags: ['memories'],
});

/** What the gateway says about itself, to everybody. */
export const publicOperation = (about: Operation): ZodOpenApiOperationObject => ({
  ...operation(about, false),
  tags: ['gateway'],
  security: [],
});

const operation = (
  { id, summary, description, success, otherwise, errors, ...about }: Omit<Operation, 'consistent'>,
  consistent: boolean,
): ZodOpenApiOperationObject => ({
  operationId: id,
  summary,
  ...(description !== undefined && { description }),
  requestParams: {
    ...(about.path && { path: about.path }),
    ...(about.query && { query: about.query }),
    header: z.object({ ...about.headers, 'X-Request-Id': RequestIdParameter }),
  },
  ...(about.body && { requestBody: { required: true, content: contentOf(about.body) } }),
  responses: {
    [success.status]: {
      description: success.description,
      headers: answerHeaders({ errors, consistent }),
      ...(success.body && { content: contentOf(success.body) }),
    },
    ...(otherwise && {
      [otherwise.status]: {
        description: otherwise.description,
        headers: answerHeaders({ errors, consistent }),
        content: contentOf(otherwise.body),
      },
    }),
    ...failures({ errors, consistent }),
  },
});

const contentOf = ({ type, ...body }: Body) => ({ [type ?? 'application/json']: body });
