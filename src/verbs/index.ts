import { retention } from '../features/retention/verb.ts';
import { rollback } from '../features/rollback/verb.ts';
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  resumeWebhook,
  rotateWebhook,
  testWebhook,
} from '../features/webhooks/verbs.ts';
import { add, batch } from './add.ts';
import { audit } from './audit.ts';
import { changes } from './changes.ts';
import { embeddingUsage } from './embedding-usage.ts';
import { exportMemories, importMemories } from './export.ts';
import { freeze, getFreeze, unfreeze } from './freeze.ts';
import { get, list, remove, update } from './get-list-update-delete.ts';
import { createKey, listKeys, revokeKey } from './keys.ts';
import { personFile } from './person.ts';
import { context, search } from './search.ts';
import { erase, stats, users } from './users.ts';
import { purgeVersions, restoreVersion, version, versions } from './versions.ts';

/** Every verb. A path with `{id}` comes after those that it would match too. */
export const VERB_TABLE = {
  add,
  list,
  batch,
  search,
  get,
  update,
  delete: remove,
  versions,
  version,
  restore: restoreVersion,
  purge: purgeVersions,
  context,
  audit,
  changes,
  users,
  erase,
  rollback,
  retention,
  stats,
  person_file: personFile,
  export: exportMemories,
  import: importMemories,
  list_keys: listKeys,
  create_key: createKey,
  revoke_key: revokeKey,
  embedding_usage: embeddingUsage,
  list_webhooks: listWebhooks,
  create_webhook: createWebhook,
  delete_webhook: deleteWebhook,
  test_webhook: testWebhook,
  resume_webhook: resumeWebhook,
  rotate_webhook: rotateWebhook,
  get_freeze: getFreeze,
  freeze,
  unfreeze,
};
