import type { OptionsSchema } from 'omp-gateway/provider';

export interface Options {
  /** Address of the server. */
  readonly url: string;
  /** Sent as `x-chroma-token`. Undefined: the server asks for none. */
  readonly token?: string;
  readonly tenant: string;
  readonly database: string;
  /** Undefined: `omp-memories`, or what the library of the preset calls it. */
  readonly collection?: string;
  /** Reads a collection that this library fills. Undefined: the gateway's own collection. */
  readonly preset?: 'langchain' | 'mem0';
  /** With `preset`: the metadata key that holds the user. */
  readonly user_field: string;
  /** Maximum memories of one user that a list puts in order, 1 to 1,000,000. */
  readonly max_listed: number;
}

const DEFAULTS: Options = {
  url: 'http://127.0.0.1:8000',
  tenant: 'default_tenant',
  database: 'default_database',
  user_field: 'user_id',
  max_listed: 100_000,
};

type Rule = readonly [must: string, holds: (value: unknown) => boolean];
const TEXT: Rule = ['must be a text', (value) => typeof value === 'string' && value !== ''];
const RULES: Readonly<Record<keyof Options, Rule>> = {
  url: [
    'must be the address of a server, such as http://127.0.0.1:8000',
    (value) => typeof value === 'string' && /^https?:\/\/[^/]+\/?$/.test(value) && URL.canParse(value),
  ],
  token: TEXT,
  tenant: TEXT,
  database: TEXT,
  collection: TEXT,
  preset: ['must be langchain or mem0', (value) => value === 'langchain' || value === 'mem0'],
  user_field: TEXT,
  max_listed: [
    'must be a whole number from 1 to 1000000',
    (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 1_000_000,
  ],
};

/** Any library for schemas would do, such as zod; the few options here need none. */
export const optionsSchema: OptionsSchema<Options> = {
  '~standard': {
    version: 1,
    vendor: 'omp-gateway-provider-chroma',
    validate(value) {
      const given = Object.entries(value ?? {}).filter(([, one]) => one !== undefined);
      const issues = given.flatMap(([name, one]) => {
        const [must, holds] = RULES[name as keyof Options] ?? ['is no option of this provider', () => false];
        return holds(one) ? [] : [{ message: must, path: [name] }];
      });
      return issues.length > 0 ? { issues } : { value: { ...DEFAULTS, ...Object.fromEntries(given) } };
    },
  },
};
