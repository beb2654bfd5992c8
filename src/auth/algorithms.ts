/**
 * What tokens may be signed with: public keys only. With a shared secret among them, somebody could sign with the
 * public key as if it were that secret.
 */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
export type Algorithm = (typeof ALGORITHMS)[number];
