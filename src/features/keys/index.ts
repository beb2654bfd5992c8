import { feature } from '../feature.ts';
import { createKey, listKeys, revokeKey } from './verbs.ts';

export const keys = feature({ verbs: { list_keys: listKeys, create_key: createKey, revoke_key: revokeKey } });
