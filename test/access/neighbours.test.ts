import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client } from '../support/client.ts';
import { FULL } from '../support/full.ts';
import { openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { openSubject, type Subject } from '../support/subject.ts';
import type { WireHit, WirePage } from '../support/wire.ts';
import type { Open } from './bench.ts';
import { bearer, openBackdoor } from './callers.ts';
import { globMatches } from './rule.ts';

interface Alphabet {
  /** Characters of scopes; `/` among them. */
  readonly literals: string;
  /** The longest scope that is stored, and the longest pattern that is granted or asked for. */
  readonly longestScope: number;
  readonly longestPattern: number;
}

/** Every text over some characters up to a length, the empty one first. */
const texts = (characters: string, longest: number): string[] => {
  const shorter = longest === 0 ? [] : texts(characters, longest - 1);
  const last = shorter.filter((text) => text.length === longest - 1);
  return longest === 0 ? [''] : [...shorter, ...last.flatMap((text) => [...characters].map((next) => text + next))];
};

const isScope = (text: string): boolean => text.split('/').every((segment) => segment !== '');
const WORD = 'coffee';
const USER = 'ana';

/**
 * Every grant against every glob of a list and every prefix of a search, over all scopes of a small alphabet: the answer
 * holds exactly the scopes that both match, and 403 comes exactly when no text could match both.
 */
const neighbours = (label: string, open: Open, alphabet: Alphabet) =>
  describe(`neighbours, ${label}`, () => {
    const { literals, longestScope, longestPattern } = alphabet;
    const scopes = texts(literals, longestScope).filter(isScope);
    const patterns = texts(`${literals}*?`, longestPattern).slice(1);
    const prefixes = texts(literals, longestPattern).slice(1);
    /** Two patterns that overlap do so on a text no longer than both together. */
    const universe = texts(literals, 2 * longestPattern);
    const door = openBackdoor();
    let subject: Subject;
    let master: Client;
    const idOf = new Map<string, string>();
    beforeAll(async () => {
      subject = await open({ authenticator: door.authenticator });
      master = subject.as(bearer(door.admit('master')));
      const { id } = await master.add({ user_id: USER, content: `${WORD} without a scope` });
      idOf.set('', id);
      for (const scope of scopes) {
        idOf.set(scope, (await master.add({ user_id: USER, scope, content: `${WORD} in ${scope}` })).id);
      }
    });
    afterAll(() => subject?.close());

    /** The texts of the universe that a pattern matches. Cached. */
    const remembered = new Map<string, ReadonlySet<string>>();
    const matched = (pattern: string): ReadonlySet<string> => {
      const found = remembered.get(pattern) ?? new Set(universe.filter((text) => globMatches(pattern, text)));
      remembered.set(pattern, found);
      return found;
    };
    /** The answer to `asked` under a grant of `granted`: 403, or the ids of exactly these. */
    const due = (granted: string, asked: string): 403 | string[] => {
      const [one, other] = [matched(granted), matched(asked)];
      if (![...one].some((text) => other.has(text))) return 403;
      return scopes.filter((scope) => one.has(scope) && other.has(scope)).map((scope) => idOf.get(scope) as string);
    };
    const check = async (asked: readonly string[], globOf: (asked: string) => string, ask: Ask) => {
      const wrong: string[] = [];
      let [refused, found] = [0, 0];
      for (const granted of patterns) {
        const client = subject.as(bearer(door.admit('reader', { grants: [`read:${granted}`], users: null })));
        await Promise.all(
          asked.map(async (each) => {
            const wanted = due(granted, globOf(each));
            const given = await ask(client, each);
            if (wanted === 403) refused++;
            else found += wanted.length;
            if (String(given) !== String(wanted === 403 ? wanted : wanted.sort())) {
              wrong.push(`read:${granted} asking for ${each}: ${given} instead of ${wanted}`);
            }
          }),
        );
      }
      expect(wrong.slice(0, 10), `${wrong.length} wrong`).toEqual([]);
      expect(Math.min(refused, found)).toBeGreaterThan(100);
    };

    it('[Decision 14] [Decision 3] [SPEC GET /memories scope] list: every grant with every glob', () =>
      check(patterns, (glob) => glob, listed));

    it('[Decision 14] [Decision 4] [SPEC GET /memories/search scope] search: every grant with every prefix', () =>
      check(
        prefixes.flatMap((prefix) => [prefix, `${prefix}*`]),
        (prefix) => prefix.replace(/\*?$/, '*'),
        searched,
      ));

    it('[Decision 14] [SPEC GET /memories/{id}] get: every grant with every scope', async () => {
      const wrong: string[] = [];
      const counts = { 200: 0, 403: 0 };
      for (const granted of patterns) {
        const client = subject.as(bearer(door.admit('reader', { grants: [`read:${granted}`], users: null })));
        await Promise.all(
          [...idOf].map(async ([scope, id]) => {
            // The grant of everything covers unscoped records too, no other one does.
            const allowed = granted === '*' || (scope !== '' && matched(granted).has(scope));
            const wanted = allowed ? 200 : 403;
            const { status } = await client.ask(client.byId(id));
            counts[wanted]++;
            if (status !== wanted) wrong.push(`read:${granted} getting ${scope}: ${status} instead of ${wanted}`);
          }),
        );
      }
      expect(wrong.slice(0, 10), `${wrong.length} wrong`).toEqual([]);
      expect(Math.min(...Object.values(counts))).toBeGreaterThan(100);
    });
  });

/** 403, or the sorted ids of what came. */
type Ask = (client: Client, asked: string) => Promise<number | string[]>;

const listed: Ask = async (client, scope) => {
  const { status, body } = await client.ask('/memories', { user_id: USER, scope, limit: 500 });
  return status === 200 ? (body as WirePage).items.map(({ id }) => id).sort() : status;
};
const searched: Ask = async (client, scope) => {
  const { status, body } = await client.ask('/memories/search', { user_id: USER, q: WORD, scope, limit: 100 });
  return status === 200 ? (body as { results: WireHit[] }).results.map(({ memory }) => memory.id).sort() : status;
};

const PLAIN = { literals: 'a-/', longestScope: 4, longestPattern: 3 };
/** What SQL's own patterns would take for wildcards. */
const SQL = { literals: 'a%_\\/', longestScope: 3, longestPattern: 2 };

neighbours(
  'memory',
  (options) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...options }),
  PLAIN,
);
if (FULL) onOtherStores();

/** The conformance suite tries the same on a dozen patterns. */
function onOtherStores(): void {
  neighbours(
    'memory with emulated scopes',
    (options) => openSubject({ provider: 'memory', options: { scopes: 'none' }, ...options }),
    PLAIN,
  );
  neighbours(
    'embedded postgres',
    (options) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...options }),
    SQL,
  );
  if (SERVER_URL !== '')
    neighbours('postgres on a server', (options) => openServerSubject({}, undefined, options), SQL);
}
