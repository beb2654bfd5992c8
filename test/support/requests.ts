import { tmpdir } from 'node:os';
import {
  type AuditQuery,
  Call,
  type Caller,
  type Consistency,
  type ListQuery,
  type MaintenanceContext,
  type NewMemory,
  type Provider,
  type Ref,
  type SearchQuery,
} from '#contract';
import { openProvider } from '../../src/registry.ts';
import { RECORDED, recordingLog } from './subject.ts';

/** What tests ask of a provider directly: everything a request must carry, for somebody who may see everything. */
export const callBy = (caller: Partial<Caller> = {}, consistency?: Consistency): Call =>
  new Call('test', { id: 'test', app: 'test', ...caller }, undefined, { consistency });
export const call: Call = callBy();

export const refTo = (id: string, more: Partial<Ref> = {}): Ref => ({ id, users: null, within: null, ...more });

export const listOf = (user_id: string, more: Partial<ListQuery> = {}): ListQuery => ({
  user_id,
  tags: [],
  within: null,
  max_bytes: 1e9,
  limit: 50,
  ...more,
});

export const searchFor = (user_id: string, text: string, more: Partial<SearchQuery> = {}): SearchQuery => ({
  user_id,
  text,
  vector: null,
  tags: [],
  within: null,
  max_bytes: 1e9,
  limit: 10,
  ...more,
});

export const auditOf = (user_id: string, more: Partial<AuditQuery> = {}): AuditQuery => ({
  user_id,
  within: null,
  limit: 100,
  ...more,
});

export const memoryOf = (user_id: string, content: string, more: Partial<NewMemory> = {}): NewMemory => ({
  content,
  user_id,
  scope: null,
  tags: [],
  source: null,
  confidence: null,
  valid_from: null,
  valid_to: null,
  supersedes: [],
  extensions: {},
  ...more,
});

/** What a provider is opened with: keyword search, so that no embedder is needed, and everything recorded. */
export const contextOf = (more: Partial<MaintenanceContext> = {}): MaintenanceContext => ({
  embedder: undefined,
  ranking: { mode: 'keyword', keyword_weight: 1 },
  audit: RECORDED,
  data_dir: tmpdir(),
  log: recordingLog(),
  ...more,
});

/** The memory provider as the registry opens it, without anything around it. */
export const openMemory = (
  scopes: 'native' | 'none' = 'native',
  more: Partial<MaintenanceContext> = {},
): Promise<Required<Provider>> => openProvider('memory', { scopes }, contextOf(more)) as Promise<Required<Provider>>;
