import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PRESET_NAMES, PRESETS } from '../../providers/postgres/mapped/presets.ts';
import { loadConfig } from '../../src/config/load.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { documentedEnvironment } from '../mapped/documented.ts';

const FOLDER = new URL('../../docs/integrations/', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, FOLDER), 'utf8');
/** The pages that are no page of a preset. */
const GENERAL = ['README.md', 'mapped-indexes.md', 'mapped-tables.md'];
const files = readdirSync(FOLDER).sort();

const code = (text: string | undefined): string => (text === undefined ? '' : `\`${text}\``);

it('every preset has a page, and every page a preset', () => {
  expect(files).toEqual([...PRESET_NAMES.map((name) => `${name}.md`), ...GENERAL].sort());
});

it('the index has what each preset says of the owner, of times and of writing', () => {
  const rows = [...read('README.md').matchAll(/^\| \[[^\]]+\]\((.+)\) \|(.+)\|$/gm)].map(([, link, cells]) => [
    link,
    ...(cells as string).split('|').map((cell) => cell.trim()),
  ]);
  const expected = PRESET_NAMES.map((name) => {
    const { fields, read_only } = PRESETS[name];
    const times = [fields.created_at, fields.updated_at].filter((place) => place !== undefined);
    return [`${name}.md`, code(name), code(fields.user_id), times.map(code).join(', '), read_only ? 'no' : 'yes'];
  });
  expect(rows).toEqual(expected);
});

describe.each(files)('docs/integrations/%s', (file) => {
  const text = read(file);

  it('names only settings that exist', () => {
    const known = new Set(SETTINGS.map(({ env }) => env));
    const named = [...text.matchAll(/\b(?:OMP|DATABASE|OPENAI)_[A-Z_]*[A-Z]/g)].map(([name]) => name);
    expect(named).not.toEqual([]);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });

  it.skipIf(GENERAL.includes(file))('has configurations that the gateway takes without a word', () => {
    const page = file.replace(/\.md$/, '');
    expect(text).toMatch(/^# In front of /);
    expect(text.match(/```(\w+)/)?.[1]).toBe('sh');
    const sections = text
      .split(/^## /m)
      .slice(1)
      .filter((section) => section.includes('```sh'));
    const headings = [undefined, ...sections.map((section) => section.slice(0, section.indexOf('\n')))];
    for (const heading of headings) {
      const { config, warnings } = loadConfig({ env: documentedEnvironment(page, heading) });
      expect(warnings).toEqual([]);
      expect(config.mapping.preset).toBe(page);
    }
  });
});
