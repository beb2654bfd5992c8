/** The closed lists and numbers of the specification. Written from it, not from the gateway. */

/** Code → status and type of an error. */
export const ERRORS = {
  unauthorized: { status: 401, type: 'auth' },
  scope_denied: { status: 403, type: 'auth' },
  not_found: { status: 404, type: 'not_found' },
  invalid_request: { status: 400, type: 'invalid' },
  rate_limited: { status: 429, type: 'rate_limited' },
  unsupported_capability: { status: 400, type: 'invalid' },
  provider_error: { status: 502, type: 'provider_error' },
  payload_too_large: { status: 413, type: 'invalid' },
} as const;
export type Code = keyof typeof ERRORS;

export const VERBS = ['add', 'search', 'get', 'update', 'delete', 'list', 'context', 'audit'] as const;
export const STATUSES = ['queued', 'indexing', 'done', 'failed'] as const;
/** The default bound of a request body. */
export const MAX_BODY_BYTES = 1_048_576;

export interface Memory {
  readonly id: string;
  readonly content: string;
  readonly user_id: string;
  readonly created_at: string;
  readonly updated_at?: string | null;
  readonly scope?: string | null;
  readonly tags?: readonly string[] | null;
  readonly status?: string | null;
  readonly [field: string]: unknown;
}

export interface Page {
  readonly items: readonly Memory[];
  readonly next_cursor?: string | null;
}

export interface Hit {
  readonly memory: Memory;
  readonly score: number;
}

export interface Capabilities {
  readonly verbs: readonly string[];
  readonly features: Readonly<Record<string, unknown>>;
  readonly limits?: Readonly<Record<string, unknown>> | null;
}
