import { describe, expect, it } from 'vitest';
import { maskSecrets } from '../../src/move/secrets.ts';
import { costOf } from '../support/hold.ts';
import { coreOf, SECRETS } from './secrets.ts';

describe('[Decision 43] secrets', () => {
  it.each(SECRETS)('of this shape are masked: %s', (_, secret) => {
    for (const text of [secret, `use ${secret} for it`, `"${secret}"`, `a=${secret}\nnext line`]) {
      const { text: masked, count } = maskSecrets(text);
      expect(masked).toContain('[masked]');
      expect(count).toBeGreaterThan(0);
      expect(masked).not.toContain(coreOf(secret));
    }
  });

  it.each([
    ...[
      'the commit 9fceb02d0ae598e95dc970b74767f19372d61af8',
      'see https://example.org:8080/a@b',
      'sk-learn or scikit',
    ],
    ...[
      'a token for each user',
      'const password: string = form.value;',
      'process.env.API_KEY is read',
      'pk_ or sk_ keys',
    ],
    ...['id 01a20dbb-cd4c-7743-9e0e-dc59e39a7149', 'bearer of good news', 'the key-value-store of the shop'],
    ...['basic misunderstandings of it', 'Authorization: none', 'http://[::1]:80/a@b', 'file://C:/Users/a@b'],
  ])('are not what this is: %s', (text) => {
    expect(maskSecrets(text)).toEqual({ text, count: 0 });
  });

  it.each([
    ['Bearer abcdefghijklmnopqrstuvwx', 'Bearer [masked]'],
    ['Authorization: abcdefghijklmnopqrstuvwx', 'Authorization: [masked]'],
    ['"authorization": "ApiKey abcdefghijklmnopqrstuvwx"', '"authorization": "ApiKey [masked]"'],
    ['postgres://u:p/ss@host', 'postgres://u:[masked]@host'],
    ['postgres://u:p@s/s@host', 'postgres://u:[masked]@s/s@host'],
    ['Basic dXNlcjpwYXNzd29yZA8', 'Basic [masked]'],
  ])('are masked: %s', (text, masked) => {
    expect(maskSecrets(text)).toEqual({ text: masked, count: 1 });
  });

  it('are masked without the words around them', () => {
    expect(maskSecrets('postgres://ana:hunter2@db/shop and API_KEY="abcd1234efgh" here')).toEqual({
      text: 'postgres://ana:[masked]@db/shop and API_KEY="[masked]" here',
      count: 2,
    });
    const pem = `-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n`;
    expect(maskSecrets(`a ${pem}b ${pem}c`).text).toBe('a [masked]\nb [masked]\nc');
    expect(maskSecrets('a -----BEGIN PRIVATE KEY-----\nMIIE').text).toBe('a [masked]');
  });

  it('take linear time to find, whatever beginnings of them are repeated', async () => {
    const beginnings = SECRETS.flatMap(([, secret]) =>
      [3, 4, 6, 8, 20].flatMap((length) => ['', '-', '.', ' '].map((end) => secret.slice(0, length) + end)),
    );
    const pieces = [...beginnings, 'a.', 'token=', '://', '://a:', 'secret: "', '-----BEGIN PRIVATE KEY-----'];
    const most = async (length: number) => {
      let highest = 0;
      for (const piece of new Set(pieces)) {
        const text = piece.repeat(length / piece.length);
        // The least of three: garbage collection counts too.
        let least = Number.POSITIVE_INFINITY;
        for (let n = 0; n < 3; n++) least = Math.min(least, await costOf(() => maskSecrets(text)));
        highest = Math.max(highest, least);
      }
      return highest;
    };
    await most(5_000);
    const once = await most(5_000);
    // Quadratic work would take a hundred times as long.
    expect(await most(50_000)).toBeLessThan(40 * once);
  });
});
