import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERROR_CODES, ERROR_TYPES, type ErrorCode } from '#contract';
import { STATUS } from '../src/http/error-envelope.ts';

/** Of a message: a text, or a template whose parts are not known here. */
const TEXT = /'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/.source;
/** What makes an error, and with which code, where its message is written in place. */
const MAKERS: readonly (readonly [RegExp, ErrorCode | undefined])[] = [
  [new RegExp(`new OmpError\\(\\s*'(\\w+)',\\s*(${TEXT})`, 'g'), undefined],
  [new RegExp(`\\binvalid(Request)\\(\\s*(${TEXT})`, 'g'), 'invalid_request'],
  [new RegExp(`\\b(unsupported)\\(\\s*(${TEXT})`, 'g'), 'unsupported_capability'],
];

/** Every code with its status and type. */
export const codesTable = (): string =>
  [
    '| Code | Status | Type |',
    '| --- | --- | --- |',
    ...ERROR_CODES.map((code) => `| [\`${code}\`](#${code}) | ${STATUS[code]} | \`${ERROR_TYPES[code]}\` |`),
  ].join('\n');

/** The messages of a code as the sources write them, in the order of the alphabet; `…` stands for a value. */
export const messagesOf = (code: ErrorCode): string => [...(messages().get(code) ?? [])].sort().join('\n');

function messages(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>(ERROR_CODES.map((code) => [code, new Set()]));
  const files = ['src', 'providers'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  for (const file of files.filter((name) => name.endsWith('.ts'))) {
    const source = readFileSync(file, 'utf8');
    for (const [maker, code] of MAKERS)
      for (const [, named = '', text = ''] of source.matchAll(maker)) {
        const message = shown(text);
        // A name alone is the beginning of a message that is made elsewhere.
        if (/\w\w \w/.test(message)) found.get(code ?? named)?.add(`- ${message}`);
      }
  }
  return found;
}

/** A template that holds another one is known up to there. */
const shown = (text: string): string =>
  text
    .slice(1, -1)
    .replaceAll(/\$\{[^{}]*(?:\}|$)/g, '…')
    .replaceAll(/\\(.)/g, '$1')
    .replaceAll(/[<*_|[\]]/g, '\\$&')
    .trim();
