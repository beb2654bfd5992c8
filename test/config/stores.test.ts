import { describe, expect, it } from 'vitest';
import { embeddingOptions, providerOptions } from '../../src/config/config-options.ts';
import { load, mistakesOf } from './sources.ts';

const reference = (inside: string): string => `$\{${inside}}`;

const HANDBOOK = `
  handbook:
    mount: docs/handbook
    provider: postgres
    postgres: { url: "$\{HANDBOOK_URL}" }
    mapping: { preset: langchain-py, collection: handbook }
    embedding: { kind: openai, model: text-embedding-3-large, api_key: "$\{HANDBOOK_KEY:-sk-2}" }
    required: false
    weight: 0.5
`;
const CRM = `
  crm:
    mount: crm
    provider: pinecone
    pinecone: { api_key: k, index_host: crm.example.com }
`;
const env = { HANDBOOK_URL: 'postgres://reader@db/handbook' };

/** The mistakes about stores that are written as YAML, without where they are written. */
const mistakes = (stores: string, more: Record<string, string> = {}) =>
  mistakesOf({ env: { ...env, ...more }, yaml: `stores:\n${stores}` }).map((text) =>
    text.replace(' in gateway.yaml', ''),
  );

describe('[Decision 48] stores', () => {
  it('are configurations of their own, in the order in which they are written', () => {
    const { config } = load({ env, yaml: `port: 9000\nstores:${HANDBOOK}${CRM}` });
    const [handbook, crm] = config.stores;
    expect(handbook).toMatchObject({ name: 'handbook', mount: 'docs/handbook', required: false, weight: 0.5 });
    expect(crm).toMatchObject({ name: 'crm', mount: 'crm', required: true, weight: 1 });
    expect(handbook && providerOptions(handbook.config)).toMatchObject({
      url: env.HANDBOOK_URL,
      mapping: { preset: 'langchain-py', collection: 'handbook', writable: false },
    });
    expect(handbook && embeddingOptions(handbook.config)).toMatchObject({
      model: 'text-embedding-3-large',
      api_key: 'sk-2',
    });
    expect(crm && providerOptions(crm.config)).toMatchObject({ index_host: 'crm.example.com', namespace: 'memories' });
    for (const { config: own } of config.stores) expect(own).toMatchObject({ port: 9000, stores: [] });
  });

  it('are none unless they are configured', () => {
    expect(load({}).config.stores).toEqual([]);
    expect(load({ yaml: 'stores:\n' })).toEqual(load({}));
    expect(load({ yaml: 'stores: {}\n' })).toEqual(load({}));
  });

  it('are the same in the file, as JSON in a variable, in the file it names, and as YAML there', () => {
    const stores = {
      notes: { mount: 'notes', provider: 'memory', weight: reference('WEIGHT') },
      old: { mount: 'old', data_dir: `/srv/${reference('OLD:-old')}`, required: reference('REQUIRED:-false') },
    };
    const json = JSON.stringify(stores);
    const variables = { WEIGHT: '2' };
    const inFile = load({ env: variables, yaml: `stores: ${json}` });
    expect(inFile.config.stores).toMatchObject([{ weight: 2 }, { required: false, config: { data_dir: '/srv/old' } }]);
    expect(load({ env: { ...variables, OMP_STORES: json } })).toEqual(inFile);
    expect(
      load({
        env: {
          ...variables,
          OMP_STORES:
            'notes: { mount: notes, provider: memory, weight: 2 }\nold: { mount: old, data_dir: /srv/old, required: false }',
        },
      }),
    ).toEqual(inFile);
    expect(load({ env: { ...variables, OMP_STORES_FILE: 's.json' }, files: { 's.json': json } })).toEqual(inFile);
    expect(
      load({ env: { OMP_STORES: '{"a": {"mount": "a", "provider": "memory"}}' }, yaml: `stores: ${json}` }).config
        .stores,
    ).toHaveLength(1);
  });

  it('take nothing from the variables of the root store, which keep their meaning', () => {
    const root = {
      DATABASE_URL: 'postgres://db/omp',
      OMP_SEARCH_MODE: 'vector',
      OMP_POSTGRES_SCHEMA: 'theirs',
      OPENAI_API_KEY: 'k',
    };
    const { config } = load({ env: root, yaml: 'stores:\n  old: { mount: old }\n' });
    expect(config.postgres).toMatchObject({ url: root.DATABASE_URL, schema: 'theirs' });
    expect(config.stores[0]?.config.postgres).toEqual(load({}).config.postgres);
    expect(config.stores[0]?.config.search.mode).toBe('hybrid');
    // A variable that a store refers to is in use.
    const used = {
      OMP_HANDBOOK_PASSWORD: 'p',
      OMP_STORES: `{"a": {"mount": "a", "postgres": {"url": "postgres://u:${reference('OMP_HANDBOOK_PASSWORD')}@db/a"}}}`,
    };
    expect(load({ env: used }).warnings).toEqual([]);
  });

  it('take no setting of a store from the root store, the options of another provider least of all', () => {
    const root = 'provider: ./a.js\noptions: { file: secret }';
    const { config } = load({
      yaml: `${root}\nstores:\n  b: { mount: b, provider: ./b.js }\n  m: { mount: m, provider: memory }`,
    });
    const [b, m] = config.stores;
    expect(config.options).toEqual({ file: 'secret' });
    expect(b?.config.options).toBeUndefined();
    expect(m?.config.options).toBeUndefined();
  });

  it('have a data folder of their own below that of the root store', () => {
    const { stores } = load({
      env: { OMP_DATA_DIR: '/data' },
      yaml: 'stores:\n  old: { mount: old }\n  new: { mount: new, data_dir: /new }\n',
    }).config;
    expect(stores.map(({ config }) => config.data_dir)).toEqual(['/data/stores/old', '/new']);
  });
});

describe('[Decision 48] mistakes about stores', () => {
  it('are reported all at once, with the name of the store and the setting', () => {
    const yaml = `
prot: 1
stores:
  Notes: { mount: notes, provider: memory }
  crm: { provider: pinecone, search: { mode: hybrid } }
  handbook:
    mount: docs//x
    port: 1
    auth: { mode: open }
    weight: 0
    required: maybe
    embeding: { kind: local }
    postgres: { url: "$\{NO_URL}", schema: a, tables: 1 }
    stores: {}
  text: none
`;
    expect(mistakesOf({ yaml })).toEqual([
      'prot in gateway.yaml is not a setting; did you mean port?',
      'stores.Notes in gateway.yaml: a name is a lower-case letter, then at most 31 lower-case letters, digits and hyphens',
      'stores.crm in gateway.yaml: mount is required: the scope at which the store appears, such as docs/handbook',
      `stores.crm in gateway.yaml: pinecone.api_key (such as ${reference('PINECONE_API_KEY')}) is required while provider is pinecone`,
      'stores.crm in gateway.yaml: pinecone.index_host (such as memories-abc1234.svc.aped-4627-b74a.pinecone.io) is required while provider is pinecone',
      'stores.crm in gateway.yaml: search.mode must be vector while provider is pinecone, which is searched by vectors alone',
      'stores.handbook in gateway.yaml: port belongs to the gateway: set it outside stores',
      'stores.handbook in gateway.yaml: auth belongs to the gateway: set it outside stores',
      'stores.handbook in gateway.yaml: embeding is not a setting; did you mean embedding?',
      'stores.handbook in gateway.yaml: postgres.url: the environment variable NO_URL is not set',
      'stores.handbook in gateway.yaml: postgres.tables is not a setting',
      'stores.handbook in gateway.yaml: stores belongs to the gateway: set it outside stores',
      `stores.handbook in gateway.yaml: mount must be a scope: 1 to 32 segments joined by "/", none of them "." or "..", without *, ? and control characters, not 'docs//x'`,
      "stores.handbook in gateway.yaml: required must be true or false, not 'maybe'",
      'stores.handbook in gateway.yaml: weight must be a number from 0.01 to 100, not 0',
      'stores.text in gateway.yaml: it must hold settings, each as "name: value"',
      'stores.text in gateway.yaml: mount is required: the scope at which the store appears, such as docs/handbook',
    ]);
  });

  it('name the variable that holds them, and never show what it holds', () => {
    const hush = 'hush-hush';
    expect(mistakesOf({ env: { OMP_STORES: hush } })).toEqual([
      'OMP_STORES must be stores by name, each with a mount and the settings of a store',
    ]);
    expect(mistakesOf({ env: { OMP_STORES: `{"a": {"pinecone": {"api_key": "${hush}"}}` } })).toEqual([
      expect.stringMatching(/^OMP_STORES, line 1, column \d+: not valid YAML: /),
    ]);
    const twice = `{"a": {"mount": "a", "memory": "${hush}"}, "a": {"mount": "b"}}`;
    expect(mistakesOf({ env: { OMP_STORES_FILE: 's.json' }, files: { 's.json': twice } })).toEqual([
      'OMP_STORES_FILE, line 1, column 46: not valid YAML: Map keys must be unique',
    ]);
    for (const mistake of mistakesOf({ env: { OMP_STORES: `{"a": {"mount": "a", "postgres": {"url": "${hush}"}}}` } }))
      expect(mistake).not.toContain(hush);
    expect(mistakesOf({ env: { OMP_STORES: '{"a": {"mount": "a", "weight": 1000}}' } })).toEqual([
      'stores.a in OMP_STORES: weight must be a number from 0.01 to 100, not 1000',
    ]);
  });

  it.each([
    [
      '  a: { mount: x/y }\n  b: { mount: x/y }\n',
      'mount x/y is the same as x/y, the mount of stores.a; mount them beside each other',
    ],
    [
      '  a: { mount: x }\n  b: { mount: x/y }\n',
      'mount x/y lies inside x, the mount of stores.a; mount them beside each other',
    ],
    [
      '  a: { mount: x/y }\n  b: { mount: x }\n',
      'mount x contains x/y, the mount of stores.a; mount them beside each other',
    ],
  ])('are mounts that exclude each other: %j', (stores, mistake) => {
    expect(mistakes(stores)).toEqual([`stores.b: ${mistake}`]);
  });

  it.each(['a/../b', '..', './a', 'a/.'])('are not mounts that a path would resolve: %s', (mount) => {
    expect(mistakes(`  a: { mount: ${mount} }\n`)).toEqual([expect.stringContaining('none of them "." or ".."')]);
  });

  it('are not mounts whose names only begin alike', () => {
    expect(mistakes('  a: { mount: x/y }\n  b: { mount: x/yz }\n  c: { mount: x-y }\n')).toEqual([]);
  });

  it('are names that the root store has in errors and metrics', () => {
    expect(mistakes('  postgres: { mount: x, provider: memory }\n')).toEqual([
      'stores.postgres: postgres names the root store in commands, errors and metrics; choose another name',
    ]);
    expect(mistakes('  postgres: { mount: x }\n', { OMP_PROVIDER: 'memory' })).toEqual([]);
  });

  const url = (text: string, more = '') => `postgres: { url: "${text}"${more} }`;
  const mapped = (more: string) =>
    `{ preset: langchain-py${more} }, search: { mode: vector }, embedding: { kind: local }`;
  const index = (more: string) => `provider: pinecone, pinecone: { api_key: k, index_host: ${more} }`;
  const DATABASE = 'it has the database and schema of';
  const INDEX = 'it has the index and namespace of';
  it.each([
    [
      url('postgres://a:b@DB/omp?sslmode=require'),
      { DATABASE_URL: 'postgres://db:5432/omp' },
      `${DATABASE} the root store`,
    ],
    [url('postgres://db/omp', ', schema: other'), { DATABASE_URL: 'postgres://db/omp' }, undefined],
    [url('postgres://db/other'), { DATABASE_URL: 'postgres://db/omp' }, undefined],
    [url('postgres://db:5433/omp'), { DATABASE_URL: 'postgres://db/omp' }, undefined],
    ['data_dir: .omp', {}, 'it has the data folder of the root store'],
    [
      `${url('postgres://u@db/x')}, mapping: ${mapped('')}`,
      { Z: `${url('postgres://db/x')}, mapping: ${mapped(', schema: public')}` },
      'it has the table of stores.z',
    ],
    [
      `${url('postgres://u@db/x')}, mapping: ${mapped(', collection: other')}`,
      { Z: `${url('postgres://db/x')}, mapping: ${mapped('')}` },
      undefined,
    ],
    [`${url('postgres://u@db/x')}, mapping: ${mapped('')}`, { Z: url('postgres://db/x') }, undefined],
    [
      index('https://I.example.com/'),
      { Z: index('i.example.com, namespace: memories, preset: langchain') },
      `${INDEX} stores.z`,
    ],
    [index('i.example.com, namespace: b'), { Z: index('i.example.com') }, undefined],
    ['provider: memory', { Z: 'provider: memory' }, undefined],
  ])('are memories that are mounted twice: %s beside %j', (store, { Z, ...more }: Record<string, string>, mistake) => {
    const first = Z === undefined ? '' : `  z: { mount: z, ${Z} }\n`;
    expect(mistakes(`${first}  a: { mount: a, ${store} }\n`, more)).toEqual(
      mistake === undefined ? [] : [`stores.a: ${mistake}, so each memory would appear twice; name another`],
    );
  });

  it('between stores are reported with those of the root store', () => {
    expect(mistakesOf({ yaml: 'port: none\nstores:\n  a: { mount: x }\n  b: { mount: x }\n' })).toHaveLength(2);
  });
});
