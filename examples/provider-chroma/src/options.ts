import type { OptionsSchema } from 'omp-gateway/provider';

export interface Options {
  /** Address of the server. */
  readonly url: string;
  /** Sent as `x-chroma-token`. */
  readonly token?: string;
  /** Undefined: `omp-memories`, or what the library of the preset calls it. */
  readonly collection?: string;
  /** Reads a collection that this library fills. Undefined: the gateway's own collection. */
  readonly preset?: 'langchain' | 'mem0';
  /** With `preset`: the metadata key that holds the user. */
  readonly user_field: string;
  /** Maximum memories of one user that a list puts in order. */
  readonly max_listed: number;
}

const DEFAULTS: Options = { url: 'http://127.0.0.1:8000', user_field: 'user_id', max_listed: 100_000 };

const isText = (value: unknown) => typeof value === 'string' && value !== '';
const RULES: Readonly<Record<keyof Options, readonly [message: string, holds: (value: unknown) => boolean]>> = {
  url: ['must be the address of a server', (value) => isText(value) && /^https?:\/\/[^/]+\/?$/.test(String(value))],
  token: ['must be a text', isText],
  collection: ['must be a text', isText],
  preset: ['must be langchain or mem0', (value) => value === 'langchain' || value === 'mem0'],
  user_field: ['must be a text', isText],
  max_listed: ['must be a whole number above 0', (value) => Number.isSafeInteger(value) && Number(value) > 0],
};

/** Any library for schemas would do, such as zod. */
export const optionsSchema: OptionsSchema<Options> = {
  '~standard': {
    version: 1,
    vendor: 'omp-gateway-provider-chroma',
    validate(value) {
      const given = Object.entries(value ?? {});
      const issues = given.flatMap(([name, one]) => {
        const [message, holds] = RULES[name as keyof Options] ?? ['is no option of this provider', () => false];
        return holds(one) ? [] : [{ message, path: [name] }];
      });
      return issues.length > 0 ? { issues } : { value: { ...DEFAULTS, ...Object.fromEntries(given) } };
    },
  },
};
