import type { Operation } from './operation.ts';
import { deleteRecords } from './operations/delete.ts';
import { fetchByMetadata, fetchRecords } from './operations/fetch.ts';
import { list } from './operations/list.ts';
import { createNamespace, deleteNamespace, describeNamespace, listNamespaces } from './operations/namespaces.ts';
import { query } from './operations/query.ts';
import { stats } from './operations/stats.ts';
import { update } from './operations/update.ts';
import { upsert } from './operations/upsert.ts';

export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** As the OpenAPI file writes it. */
  readonly path: string;
  readonly run: Operation;
  /** Whether API 2025-01, the one of Pinecone Local, has it not yet. */
  readonly newer?: true;
}

/** Every operation of this server, by the name that faults and recorded calls have for it. */
export const ENDPOINTS = {
  upsert: { method: 'POST', path: '/vectors/upsert', run: upsert },
  update: { method: 'POST', path: '/vectors/update', run: update },
  delete: { method: 'POST', path: '/vectors/delete', run: deleteRecords },
  fetch: { method: 'GET', path: '/vectors/fetch', run: fetchRecords },
  fetch_by_metadata: { method: 'POST', path: '/vectors/fetch_by_metadata', run: fetchByMetadata, newer: true },
  query: { method: 'POST', path: '/query', run: query },
  list: { method: 'GET', path: '/vectors/list', run: list },
  stats: { method: 'POST', path: '/describe_index_stats', run: stats },
  list_namespaces: { method: 'GET', path: '/namespaces', run: listNamespaces, newer: true },
  create_namespace: { method: 'POST', path: '/namespaces', run: createNamespace, newer: true },
  describe_namespace: { method: 'GET', path: '/namespaces/{namespace}', run: describeNamespace, newer: true },
  delete_namespace: { method: 'DELETE', path: '/namespaces/{namespace}', run: deleteNamespace, newer: true },
} as const satisfies Record<string, Endpoint>;

export type OperationName = keyof typeof ENDPOINTS;
export const OPERATION_NAMES = Object.keys(ENDPOINTS) as OperationName[];
