import { feature } from '../feature.ts';
import { purgeVersions, restoreVersion, version, versions } from './verbs.ts';

export const history = feature({ verbs: { versions, version, restore: restoreVersion, purge: purgeVersions } });
