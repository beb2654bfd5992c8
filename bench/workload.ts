/** The users of the benchmark's table: ten thousand memories of small users, and some users with more than a page. */
const SMALL_USERS = { count: 1_000, memories: 10 };
const BIG_USERS = { count: 50, memories: 60 };
/** Users that receive the memories added while measuring, so that the others stay unchanged. */
const ADDERS = 10_000;

export const VERBS = ['get', 'list', 'search', 'add'] as const;
export type BenchVerb = (typeof VERBS)[number];

export interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Body {
  readonly content: string;
  readonly user_id: string;
  readonly scope?: string;
  readonly tags?: readonly string[];
}

const WORDS =
  `account airport allergy answers apartment appointment autumn backend balcony barcelona birthday breakfast bicycle budget
  calendar camera career charger chess cinema coffee colleague commute concert contract daughter deadline dentist
  deployment dinner doctor editor electric evening exercise family favourite flight football freelance friend garden
  german guitar headphones holiday hospital husband insurance interview invoice italian jazz keyboard kitchen laptop
  lawyer library lisbon manager marathon meeting migraine monday mother museum neighbour notebook office opera passport
  peanuts phone piano playlist podcast postgres prefers project python railway recipe restaurant running saturday
  school scuba september sister spanish summer surgery swimming team tennis theatre therapist thursday ticket tofu train
  typescript vegetarian vienna violin weekend wife winter yoga`.split(/\s+/);

/** Mulberry32: the same numbers in every run. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const random = randomFrom(1);
const pick = (): string => WORDS[random(WORDS.length)] as string;

/** Some 120 characters; a third of the memories have tags, a quarter a scope. */
function memoryOf(user_id: string): Body {
  let content = pick();
  while (content.length < 116) content += ` ${pick()}`;
  return {
    content,
    user_id,
    ...(random(3) === 0 && { tags: [pick(), pick()] }),
    ...(random(4) === 0 && { scope: `${pick()}/${pick()}` }),
  };
}

/** The content of the table before measuring, with users interleaved. */
export function initialMemories(): Body[] {
  const of = (kind: string, { count, memories }: typeof SMALL_USERS): Body[] =>
    Array.from({ length: count * memories }, (_, index) => memoryOf(`${kind}-${index % count}`));
  return [...of('small', SMALL_USERS), ...of('big', BIG_USERS)];
}

const userOf = (kind: string, count: number): string => `${kind}-${random(count)}`;
const queryOf = (): string => `${pick()} ${pick()} ${pick()}`;

const listRequest = (): Request => ({
  method: 'GET',
  path: `/memories?user_id=${userOf('big', BIG_USERS.count)}`,
});

export const searchRequest = (query = queryOf()): Request => ({
  method: 'GET',
  path: `/memories/search?q=${encodeURIComponent(query)}&user_id=${userOf('small', SMALL_USERS.count)}`,
});

export const addRequest = (): Request => ({
  method: 'POST',
  path: '/memories',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(memoryOf(userOf('adder', ADDERS))),
});

/** `count` requests of one verb; `ids` are the ids of the stored memories. */
export function requestsOf(verb: BenchVerb, ids: readonly string[], count: number): Request[] {
  const make: Record<BenchVerb, () => Request> = {
    get: () => ({ method: 'GET', path: `/memories/${ids[random(ids.length)]}` }),
    list: listRequest,
    search: searchRequest,
    add: addRequest,
  };
  return Array.from({ length: count }, () => make[verb]());
}

const BATCH = 100;

/** Adds `count` memories of a user, a hundred at a time. */
export const batchesOf = (user_id: string, count: number): Request[] =>
  Array.from({ length: count / BATCH }, (_, batch) => ({
    method: 'POST',
    path: '/memories/batch',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      memories: Array.from({ length: BATCH }, (_, n) => ({
        user_id,
        content: `memory ${batch * BATCH + n} of a user who has told an assistant very many things over the years`,
        scope: `topic/${n % 20}`,
        tags: [`tag${n % 7}`],
      })),
    }),
  }));
