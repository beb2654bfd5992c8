import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** Encrypts the secrets of webhooks, so that their table does not reveal them. */
export interface Vault {
  /** `id`: of the webhook. The ciphertext is of no use in another row. */
  seal(id: string, secret: string): string;
  /** Throws if the text was sealed with another key or for another webhook. */
  open(id: string, sealed: string): string;
}

const ALGORITHM = 'aes-256-gcm';
const [KEY_BYTES, IV_BYTES, TAG_BYTES] = [32, 12, 16];

/** `passphrase`: OMP_WEBHOOK_SECRET, whose length makes it impossible to guess. */
export function createVault(passphrase: string): Vault {
  const key = Buffer.from(hkdfSync('sha256', passphrase, '', 'omp-gateway webhooks', KEY_BYTES));
  return {
    seal(id, secret) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, iv).setAAD(Buffer.from(id));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url');
    },
    open(id, sealed) {
      const bytes = Buffer.from(sealed, 'base64url');
      const [iv, tag] = [bytes.subarray(0, IV_BYTES), bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)];
      const options = { authTagLength: TAG_BYTES };
      const decipher = createDecipheriv(ALGORITHM, key, iv, options).setAAD(Buffer.from(id)).setAuthTag(tag);
      return decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    },
  };
}

/** Begins every secret. */
export const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** A secret as Standard Webhooks writes it: `whsec_` and the key in base64. */
export const newSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString('base64');
