import { createHmac } from 'node:crypto';

/**
 * What stands for an erased user in audit entries: always the same, so that entries of one user stay together, and nobody finds the
 * user for it, or by trying names, without the secret of the store.
 */
export const erasedName = (secret: Uint8Array, user_id: string): string =>
  `erased:${createHmac('sha256', secret).update(user_id).digest('hex').slice(0, 32)}`;
