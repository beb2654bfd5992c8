import { cpSync, readFileSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';

// The pages of docs/ as they are: the repository and the site show the same ones, with the same links.

const ROOT = resolve(import.meta.dirname, '../..');
const DOCS = join(ROOT, 'docs');
const START = readFileSync(join(DOCS, 'README.md'), 'utf8');

/** Files outside of docs/ that pages link to: the site has copies of them. */
const files = new Set();

/** The anchor that GitHub gives a heading. */
const slugify = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');

/** Where a link of a page leads on the site. */
function onSite(href, page) {
  if (/^(?:[a-z]+:|#)/.test(href)) return href;
  const [path = '', anchor] = href.split('#');
  const file = posix.join('docs', posix.dirname(page), path);
  const hash = anchor === undefined ? '' : `#${anchor}`;
  if (file.startsWith('docs/')) return path.replace(/(^|\/)README\.md$/, '$1index.md') + hash;
  files.add(file);
  return `/files/${copyOf(file)}${hash}`;
}

/** A Markdown file outside of docs/ is shown as text. */
const copyOf = (file) => file.replace(/\.md$/, '.txt');

function linksOnSite(md) {
  md.core.ruler.push('links-on-site', ({ tokens, env }) => {
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        const href = token.attrGet('href');
        if (href) token.attrSet('href', onSite(href, env.relativePath.replace(/index\.md$/, 'README.md')));
      }
    }
  });
}

/** The tables of a page, one group each: `| Group | |`, then rows that begin with a link, or hold several. */
const groupsOf = (page) =>
  page
    .split(/\n\n/)
    .filter((block) => block.startsWith('| '))
    .map((table) => {
      const [head, , ...rows] = table.split('\n');
      const links = rows.flatMap((row) => [
        ...row
          .split(' | ')
          .slice(0, /^\| \[/.test(row) ? 1 : 2)
          .join()
          .matchAll(/\[([^\]]+)\]\(([^)]+)\)/g),
      ]);
      return { text: head.split('|')[1].trim(), links: links.map(([, text, path]) => ({ text, path })) };
    });

/** The groups of the start page. A page that lists those of its folder by question has them below it. */
const sidebar = () => groupsOf(START).map(({ text, links }) => ({ text, items: links.map(itemOf) }));

function itemOf({ text, path }) {
  const questions = groupsOf(readFileSync(join(DOCS, path), 'utf8')).find((group) => group.text === 'Question');
  return {
    text,
    link: `/${path.replace(/README\.md$/, '').replace(/\.md$/, '')}`,
    ...(questions && { collapsed: true, items: questions.links.map(itemOf) }),
  };
}

export default {
  title: 'omp-gateway',
  description: 'The Open Memory Protocol in front of the vector database you already have',
  // A link to docs: what is made of the pages finds the packages of this folder.
  srcDir: 'pages',
  cacheDir: 'node_modules/.vitepress',
  cleanUrls: true,
  rewrites: (page) => page.replace(/README\.md$/, 'index.md'),
  markdown: {
    // Braces in a heading are part of a path.
    attrs: { disable: true },
    anchor: { slugify },
    config: linksOnSite,
  },
  vite: { resolve: { preserveSymlinks: true } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: sidebar(),
  },
  buildEnd({ outDir }) {
    for (const file of files) cpSync(join(ROOT, file), join(outDir, 'files', copyOf(file)), { recursive: true });
  },
};
