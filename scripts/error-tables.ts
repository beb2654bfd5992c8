import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERROR_CODES, ERROR_TYPES, type ErrorCode } from '#contract';
import { STATUS } from '../src/http/error-envelope.ts';

/** Of a message: a text, or a template whose parts are not known here. */
const TEXT = /'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/.source;
const NAME = /[A-Z][A-Z\d_]+/.source;
const CONSTANT = new RegExp(`const (${NAME}) =\\s*(${TEXT})`, 'g');
/** What makes an error, and with which code, where its message is written in place or as a constant. */
const MAKERS: readonly (readonly [RegExp, ErrorCode | undefined])[] = [
  [maker("new OmpError\\(\\s*'(\\w+)',"), undefined],
  [maker('\\binvalid(Request)\\('), 'invalid_request'],
  [maker('\\b(unsupported)\\('), 'unsupported_capability'],
  [maker('\\b(rateLimited)\\('), 'rate_limited'],
  [maker("\\b(providerError)\\([\\w.']+,"), 'provider_error'],
];
/** Words of two letters that tell a message from the beginning or the end of one that is put together elsewhere. */
const FEWEST_WORDS = 3;

/** Every code with its status and type. */
export const codesTable = (): string =>
  [
    '| Code | Status | Type |',
    '| --- | --- | --- |',
    ...ERROR_CODES.map((code) => `| [\`${code}\`](#${code}) | ${STATUS[code]} | \`${ERROR_TYPES[code]}\` |`),
  ].join('\n');

/** The messages of a code as the sources write them, in the order of the alphabet; `…` stands for a value. */
export const messagesOf = (code: ErrorCode): string => [...(messages().get(code) ?? [])].sort().join('\n');

function maker(call: string): RegExp {
  return new RegExp(`${call}\\s*(${TEXT}|${NAME}\\b)`, 'g');
}

function messages(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>(ERROR_CODES.map((code) => [code, new Set()]));
  const sources = ['src', 'providers']
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)))
    .filter((name) => name.endsWith('.ts'))
    .map((file) => readFileSync(file, 'utf8'));
  const constantsIn = (source: string) =>
    [...source.matchAll(CONSTANT)].map(([, name = '', text = '']) => [name, text.slice(1, -1)] as const);
  const all = sources.flatMap(constantsIn);
  for (const source of sources) {
    // A file's own constants come before those of others with the same name.
    const constants = new Map([...all, ...constantsIn(source)]);
    for (const [made, code] of MAKERS)
      for (const [, named = '', text = ''] of source.matchAll(made)) {
        const message = shown(constants.get(text) ?? text.slice(1, -1), constants);
        if ((message.match(/\w\w+/g) ?? []).length >= FEWEST_WORDS) found.get(code ?? named)?.add(`- ${message}`);
      }
  }
  return found;
}

/** A template that holds another one is known up to there. */
const shown = (text: string, constants: ReadonlyMap<string, string>): string =>
  text
    .replaceAll(/\$\{(\w+)\}/g, (part, name) => constants.get(name) ?? part)
    .replaceAll(/(?:\$\{[^{}]*(?:\}|$))+/g, '…')
    .replaceAll(/\\(.)/g, '$1')
    .replaceAll(/[<*_|[\]]/g, '\\$&')
    .trim();
