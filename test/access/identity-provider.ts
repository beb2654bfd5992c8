import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { TokenOptions } from '../../src/auth/tokens.ts';
import type { Key } from './rule.ts';

export interface Claims {
  readonly issuer?: string;
  readonly audience?: string;
  /** As the library takes it, such as `1h` or `-1h`. */
  readonly expires?: string;
}

/** An identity provider that publishes its key over HTTP and signs whatever it is asked to. */
export interface IdentityProvider {
  readonly options: TokenOptions;
  /** A token with these rights. */
  sign(key: Key, claims?: Claims): Promise<string>;
  /** The same, signed with a key that was never published, under the name of the one that is. */
  forge(key: Key): Promise<string>;
  close(): Promise<void>;
}

const ISSUER = 'https://login.example.com/';
const AUDIENCE = 'omp-gateway';

export async function openIdentityProvider(): Promise<IdentityProvider> {
  const [published, foreign] = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')]);
  const jwk = { ...(await exportJWK(published.publicKey)), kid: 'one', alg: 'ES256', use: 'sig' };
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: [jwk] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  const tokenOf = ({ users, grants }: Key, { issuer = ISSUER, audience = AUDIENCE, expires = '1h' }: Claims) =>
    new SignJWT({ users, scope: grants.join(' ') })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setSubject('somebody')
      .setIssuer(issuer)
      .setAudience(audience)
      .setExpirationTime(expires);
  return {
    options: {
      jwks_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`,
      issuer: ISSUER,
      audience: AUDIENCE,
      algorithms: ['ES256'],
      user_claim: 'users',
      grants_claim: 'scope',
      grants: [],
    },
    sign: (key, claims = {}) => tokenOf(key, claims).sign(published.privateKey),
    forge: (key) => tokenOf(key, {}).sign(foreign.privateKey),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
