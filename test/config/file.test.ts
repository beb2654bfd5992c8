import { describe, expect, it } from 'vitest';
import { resolveReferences } from '../../src/config/config-file.ts';
import { coerce } from '../../src/config/schema-reader.ts';
import { load, mistakesOf, type Written } from './sources.ts';

const reference = (inside: string): string => `$\{${inside}}`;

describe('references', () => {
  const env = { HOME_PORT: '9000', NAME: 'db', EMPTY: '' };

  it.each([
    [reference('NAME'), 'db'],
    [`a-${reference('NAME')}-${reference('HOME_PORT')}`, 'a-db-9000'],
    [reference('NAME:-other'), 'db'],
    [reference('MISSING:-other'), 'other'],
    [reference('EMPTY:-other'), 'other'],
    [reference('MISSING:-'), ''],
    [`$${reference('NAME')}`, reference('NAME')],
    ['pa$word$$1$', 'pa$word$1$'],
  ])('%s becomes %s', (text, resolved) => {
    expect(resolveReferences(text, { env, referenced: new Set() })).toEqual({ text: resolved, problems: [] });
  });

  it('become the type of their setting', () => {
    const yaml = `port: ${reference('HOME_PORT')}\nhost: ${reference('HOME_PORT')}\nsearch:\n  keyword_weight: 0.${reference('W:-25')}\n`;
    const { config } = load({ env, yaml });
    expect(config).toMatchObject({ port: 9000, host: '9000', search: { keyword_weight: 0.25 } });
    expect(coerce('boolean', 'true')).toBe(true);
    expect(coerce('boolean', 'yes')).toBe('yes');
  });

  it('that are empty leave a setting unset', () => {
    expect(load({ yaml: `postgres:\n  url: ${reference('URL:-')}\n` })).toEqual(load({}));
  });

  it('must be set and well formed', () => {
    const yaml = `host: ${reference('MISSING')}${reference('EMPTY')}\ndata_dir: "$\{1st}"\n`;
    expect(mistakesOf({ env, yaml })).toEqual([
      'host in gateway.yaml: the environment variable MISSING is not set',
      'host in gateway.yaml: the environment variable EMPTY is not set',
      expect.stringMatching(/^data_dir in gateway\.yaml: a reference is /),
    ]);
  });

  it('are shown as written, because their values may be secret', () => {
    const yaml = `port: ${reference('TOKEN')}\n`;
    expect(mistakesOf({ env: { TOKEN: 'hush' }, yaml })).toEqual([
      `port in gateway.yaml must be an integer from 0 to 65535, not '${reference('TOKEN')}'`,
    ]);
  });
});

const lists = (n: number) => `a${n}: &a${n} [${Array(9).fill(n === 0 ? 'x' : `*a${n - 1}`)}]\n`;
/** Nine lines that stand for 9 ** 9 values. */
const ALIAS_BOMB = Array.from({ length: 9 }, (_, n) => lists(n)).join('');

describe('the file', () => {
  it.each([
    ['host: a\nport: [1\n', /^gateway\.yaml, line 3, column 1: not valid YAML: /],
    ['port: 1\nport: 2\n', /^gateway\.yaml, line 2, column 1: not valid YAML: Map keys must be unique$/],
    ['host: *there\n', /^gateway\.yaml: not valid YAML: an alias/],
    [ALIAS_BOMB, /^gateway\.yaml: not valid YAML: its aliases \(\*name\) stand for too much/],
    ['- port\n', /^gateway\.yaml must hold settings/],
    ['search.mode: vector\n', /^search\.mode in gateway\.yaml is not a setting/],
    ['batch_size: 2\n', /^batch_size in gateway\.yaml is not a setting; did you mean embedding\.batch_size\?$/],
    ['port: "8080"\n', /^port in gateway\.yaml must be an integer/],
    ['port: { url: hush }\n', /^port in gateway\.yaml must be an integer from 0 to 65535, not \[Object\]$/],
    ['__proto__: { port: 1 }\n', /^__proto__ in gateway\.yaml is not a setting/],
  ])('%j is a mistake', (yaml, mistake) => {
    expect(mistakesOf({ yaml })[0]).toMatch(mistake);
  });

  it('may be empty', () => {
    expect(load({ yaml: '# nothing yet\n' })).toEqual(load({}));
  });

  it('must exist when it is named', () => {
    expect(mistakesOf({ flags: { config: 'no.yaml', port: 'x' } })).toEqual([
      'no.yaml cannot be read: there is no such file',
      "--port must be an integer from 0 to 65535, not 'x'",
    ]);
  });
});

describe('secrets', () => {
  it('come from the file that *_FILE names, without the last newline', () => {
    const env = { DATABASE_URL_FILE: '/run/secrets/url' };
    const { config } = load({ env, files: { '/run/secrets/url': 'postgres://u:p@db/omp\r\n' } });
    expect(config.postgres.url).toBe('postgres://u:p@db/omp');
  });

  it('from the environment win over the file', () => {
    const yaml = 'postgres:\n  url: postgres://file\n';
    expect(load({ yaml, env: { DATABASE_URL: 'postgres://variable' } }).config.postgres.url).toBe(
      'postgres://variable',
    );
    const files = { secret: 'postgres://secret' };
    expect(load({ yaml, env: { DATABASE_URL_FILE: 'secret' }, files }).config.postgres.url).toBe('postgres://secret');
  });

  it('are set only once, by a readable file that is not empty', () => {
    const openai = { OMP_EMBEDDER: 'openai', OPENAI_API_KEY_FILE: 'key' };
    expect(mistakesOf({ env: { ...openai, DATABASE_URL: 'postgres://db', DATABASE_URL_FILE: 'url' } })).toEqual([
      'OPENAI_API_KEY_FILE names key, which cannot be read: there is no such file',
      'DATABASE_URL and DATABASE_URL_FILE are both set; keep one of them',
    ]);
    expect(mistakesOf({ env: openai, files: { key: '\n' } })).toEqual([
      'OPENAI_API_KEY_FILE names key, which is empty',
    ]);
  });

  it.each<Written>([
    { env: { DATABASE_URL: 'hush' } },
    { env: { DATABASE_URL_FILE: 'url' }, files: { url: 'hush' } },
    { env: { OMP_EMBEDDER: 'openai', OPENAI_API_KEY: 'hush hush' } },
    { yaml: 'postgres:\n  url: hush\n' },
    { yaml: 'postgres:\n  url: [hush]\n' },
    { yaml: 'provider: memory\npostgres:\n  url: hush\n' },
    { yaml: 'embedding:\n  api_key: hush\n' },
    { yaml: 'embedding: {api_key: x}} "hush"\n' },
    { yaml: 'embedding:\n  api_key: *hush\n' },
    { yaml: 'embedding:\n  api_key: "hush\n' },
    { yaml: 'embedding:\n  api_key: |hush\n    x\n' },
    { yaml: 'embedding:\n  api_key: !hush x\n' },
    { env: { OMP_RATE_LIMIT_STORE: 'redis', OMP_REDIS_URL: 'hush' } },
    { env: { OMP_RATE_LIMIT_STORE: 'redis', OMP_REDIS_URL: 'redis://:hush@[' } },
    { env: { OMP_REDIS_URL: 'redis://:hush@localhost' } },
  ])('never appear in a message: %j', (written) => {
    const mistakes = mistakesOf(written);
    expect(mistakes).not.toEqual([]);
    expect(mistakes.join('\n')).not.toContain('hush');
  });
});
