import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PRESET_NAMES as INDEX_PRESETS } from '../../providers/pinecone/mapped/presets.ts';
import { PRESET_NAMES as TABLE_PRESETS } from '../../providers/postgres/mapped/presets.ts';
import { loadConfig } from '../../src/config/load.ts';
import { documentedEnvironment } from '../mapped/documented.ts';
import { blocks, ROOT, read } from './markdown.ts';

const FOLDER = 'docs/integrations';
const PAGES = [...TABLE_PRESETS, ...INDEX_PRESETS.map((name) => `pinecone-${name}`)];

it('every preset has a page', () => {
  const pages = readdirSync(`${ROOT}/${FOLDER}`).map((file) => file.replace(/\.md$/, ''));
  expect(pages).toEqual(expect.arrayContaining(PAGES));
});

describe.each(PAGES)('docs/integrations/%s.md', (page) => {
  const text = read(`${FOLDER}/${page}.md`);

  it('begins with a configuration, and the gateway accepts all of them without a warning', () => {
    expect(blocks(text)[0]?.language).toBe('sh');
    const sections = text
      .split(/^## /m)
      .slice(1)
      .filter((section) => section.includes('```sh'));
    for (const heading of [undefined, ...sections.map((section) => section.slice(0, section.indexOf('\n')))]) {
      const { config, warnings } = loadConfig({ env: documentedEnvironment(page, heading) });
      expect(warnings).toEqual([]);
      expect(config.mapping.preset ?? `pinecone-${config.pinecone.preset}`).toBe(page);
    }
  });
});
