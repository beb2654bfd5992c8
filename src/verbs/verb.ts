import type { z } from 'zod';
import type { AuditAction, Call, ErrorCode } from '#contract';
import type { Access } from '../core/access.ts';
import type { AuditFacts } from '../core/audit-queue.ts';
import type { Demands } from '../core/demands.ts';
import { ACTIONS } from '../core/grants.ts';
import type { Store } from '../core/store.ts';

/**
 * A verb: what a client may ask of the gateway. Routes, the OpenAPI document, `/capabilities`, tools of agents and other
 * interfaces are made from it.
 *
 * `run` gets the input after validation, and what the caller may access. It keeps to the caller's grants (Decision 14): with
 * `Access`, each query carries the users and scopes of the caller, and each record that is returned is checked again.
 */
export interface Verb<
  Input extends z.ZodObject = z.ZodObject,
  Output = unknown,
  Need extends keyof Store = keyof Store,
  Request = unknown,
> {
  /** The name in messages, and in the audit log. A batch is many adds there. */
  readonly name: AuditAction | 'batch';
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** `{id}` stands for the input field `id`, and so on. */
  readonly path: `/${string}`;
  /** Fields that are neither in the path nor in a header come from the query string, or from the body (`Body.field`). */
  readonly input: Input;
  /** Input fields that come from headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Body;
  /** What the store must have. Without it the verb is `unsupported_capability`. */
  readonly needs: readonly Need[];
  /** What else it must be like. */
  suits?(store: Store): boolean;
  /** What an operator can do if the store lacks it. */
  readonly remedy?: string;
  /** Whether it changes memories: on a read-only store, the message says why it is. */
  readonly writes?: true;
  /** Checked before `run`, within the audit entry. A verb about memories that it names, or some scopes, checks those itself (`Access`). */
  readonly demands?: Demands<Extract<keyof z.output<Input>, string>>;
  /** The flag of an extension in `features` of `/capabilities`; undefined: a verb of the protocol, or part of another flag. */
  readonly feature?: string;
  /** Makes the request of the input: what depends on the store. Like an invalid input, what it throws leaves no audit entry. Default: the input. */
  read?(input: z.output<Input>, access: Access, call: Call): Request;
  /**
   * What the audit entry says besides name and outcome: several facts, several entries. `none`: there is no entry. `own`: `run` writes as
   * many as it finds something to tell, each with an outcome.
   */
  readonly facts: Facts<NoInfer<Request>> | 'none' | 'own';
  /** `facts` are those of the entry, to be completed once the record is known. */
  run(
    request: Request,
    access: Access & { readonly store: Required<Pick<Store, Need>> },
    call: Call,
    facts: AuditFacts,
  ): Promise<Output>;
  readonly success: Success;
  /**
   * Its errors, besides those that every verb can answer, and `payload_too_large` if it has a body. Default: `invalid_request`
   * and `unsupported_capability`.
   */
  readonly errors?: readonly ErrorCode[];
  /** The name in the OpenAPI document. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  /** Default: `memories`. */
  readonly tag?: 'memories' | 'keys' | 'webhooks' | 'store';
  /** Whether it can answer `scope_denied`. Default: true. */
  readonly denies?: boolean;
  /** Whether it waits for the client's writes through other replicas. Default: true. */
  readonly consistent?: boolean;
}

/** A method, so that a verb is also a verb of any request. */
type Facts<Request> = { of(request: Request, access: Access): AuditFacts | readonly AuditFacts[] }['of'];

/** The JSON body of a request. */
interface Body {
  /** The input field that holds the body, and others come from the query string; undefined: the body is the input. */
  readonly field?: string;
  /** The schema in the OpenAPI document, if it is not the schema of the input. */
  readonly schema?: z.ZodType;
  readonly example: object;
}

/** The answer to a request. */
interface Success {
  /** Default: 200. */
  readonly status?: 201 | 204;
  readonly description: string;
  /** Undefined: the answer has no body. */
  readonly schema?: z.ZodType;
  readonly example?: object;
  /** Whether the answer is one memory, which has an `ETag`. */
  readonly tagged?: true;
  /** Whether the answer is a `FileAnswer`. */
  readonly file?: true;
}

/** An answer that is made while it is sent: a file of JSON objects, one a line. */
export interface FileAnswer {
  readonly name: string;
  /** The next page is made when the one before is taken. */
  readonly pages: AsyncIterable<readonly object[]>;
}

export const verb = <Input extends z.ZodObject, Output, const Need extends keyof Store, Request = z.output<Input>>(
  definition: Verb<Input, Output, Need, Request>,
): Verb<Input, Output, Need, Request> => definition;

/** The input fields of a verb that come from the query string. */
export function queryFieldsOf({
  input,
  path,
  headers = {},
  body,
}: Pick<Verb, 'input' | 'path' | 'headers' | 'body'>): string[] {
  if (body && body.field === undefined) return [];
  const elsewhere = [...fieldsIn(path), ...Object.keys(headers), body?.field];
  return Object.keys(input.shape).filter((name) => !elsewhere.includes(name));
}

/** The input fields in the path of a verb. */
export const fieldsIn = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);

export const isSupported = ({ needs, suits }: Pick<Verb, 'needs' | 'suits'>, store: Store): boolean =>
  needs.every((name) => store[name] !== undefined) && suits?.(store) !== false;

/** What a verb demands of its caller, for the documents; undefined: only what concerns the memories themselves. */
export function demandsInWords({ demands, input }: Pick<Verb, 'demands' | 'input'>): string | undefined {
  if (!demands) return undefined;
  const { users, admin, trusted, ...actions } = demands;
  const grants = ACTIONS.flatMap((action) => {
    const needed = actions[action];
    return needed === undefined ? [] : [needed === 'all' ? `\`${action}:*\`` : `a \`${action}\` grant`];
  });
  const ofUsers = () => {
    if (users === undefined) return '';
    if (users === 'all') return ' for all users';
    const isOptional = input.shape[users.in]?.safeParse(undefined).success;
    return isOptional ? ` for the user, without \`${users.in}\` for all users` : ' for the user';
  };
  return [
    [...grants, ...(admin ? ['`admin:*`'] : [])].join(' and ') + ofUsers(),
    trusted && 'of a trusted key',
    admin === 'unless open' && 'unless the gateway is open',
  ]
    .filter(Boolean)
    .join(', ');
}
