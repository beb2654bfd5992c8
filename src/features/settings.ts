import { versions } from './history/settings.ts';
import { retention } from './retention/settings.ts';
import { webhooks } from './webhooks/settings.ts';

/** What a gateway has once; a mounted store has the others of `Stores` too. */
const ofGateway = { retention };

/**
 * The settings of features, by their group in help and tables, and in its order. Beside the list of features, because every command reads
 * the settings, and most need no verb. A gateway has those of the other groups once.
 */
export const FEATURE_SETTINGS = {
  Server: {},
  Stores: { versions, ...ofGateway },
  Access: { webhooks },
  Limits: {},
  ofGateway,
};
