import { z } from 'zod';

export const Options = z.strictObject({
  /** `none` hides the native scopes, to compare the gateway's emulation with them. */
  scopes: z.enum(['native', 'none']).default('native'),
});
