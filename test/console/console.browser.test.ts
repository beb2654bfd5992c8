import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { gate } from '../embedding/observed-embedder.ts';
import { hasChromium } from '../support/chromium.ts';
import { closedTo } from '../support/closed.ts';
import { knownCallers } from '../support/known-callers.ts';
import { serverForTest } from '../support/server.ts';
import { ana, expectAccessible, rows, stored, useConsole, useKey } from './browser.ts';

const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script> שלום 👩‍👩‍👧';

describe.skipIf(!hasChromium)('the console, in a browser', () => {
  const open = useConsole();

  it('lists what is remembered, as text', async () => {
    const { page, troubles, url } = await open('#/memories?user=ana', {}, ana(HOSTILE, 'x'.repeat(100_000)));
    await expect.poll(() => rows(page).count()).toBe(2);
    await expect.poll(() => rows(page).nth(1).textContent()).toBe(HOSTILE);
    await rows(page).nth(1).click();
    await expect.poll(() => page.locator('.content').textContent()).toBe(HOSTILE);
    await expect.poll(() => page.title()).toBe('Memory of ana');
    expect(troubles).toEqual([]);
    // The address leads here again, and browsers that ask for the root too.
    expect(page.url()).toMatch(/#\/memory\?id=mem_\w+&user=ana$/);
    await page.goto(url);
    expect(page.url()).toBe(`${url}/console/`);
  });

  it('tells how the first memory comes, then whose there are', async () => {
    const { page, url, client } = await open('');
    await expect.poll(() => page.locator('h1').textContent()).toBe('Nothing is remembered yet');
    await expect
      .poll(() => page.locator('pre').allTextContents())
      .toEqual([
        expect.stringMatching(/^curl -X POST http:.*\/memories /),
        `claude mcp add --transport http memory ${url}/mcp/ana`,
        `omp-gateway import --format claude-code --user ana --to ${url}`,
      ]);
    await page.getByRole('link', { name: 'add one by hand' }).click();
    await expect.poll(() => page.locator('.empty h2').first().textContent()).toMatch(/about ana yet/);
    await ana('tea')({ client });
    await page.goto(`${url}/console/#/memories`);
    // Not the link of the page before, which is named otherwise.
    await page.locator('.empty').getByRole('link', { name: /^ana/ }).click();
    await expect.poll(() => rows(page).allTextContents()).toEqual(['tea']);
  });

  it('adds, changes and deletes, with the keyboard', async () => {
    const { page, client, troubles } = await open('#/memories?user=ana', {}, ana('first', 'second'));
    await page.getByRole('button', { name: 'Add memory' }).click();
    const form = page.locator('form.panel');
    await form.getByLabel('Text').fill('likes oolong');
    await form.getByRole('button', { name: 'Add' }).click();
    await expect.poll(() => rows(page).count()).toBe(3);
    await rows(page).first().focus();
    await page.keyboard.press('ArrowDown');
    // The focus moves with the next frame.
    await expect.poll(() => page.locator('[data-row]:focus').textContent()).toBe('second');
    await page.keyboard.press('e');
    await page.locator('.row.open textarea').fill('second, changed');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await expect.poll(() => rows(page).nth(1).textContent()).toBe('second, changed');
    await expect.poll(() => page.locator('[data-row]:focus').textContent()).toBe('second, changed');
    await page.keyboard.press('Delete');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.keyboard.press('Tab');
    await rows(page).nth(2).focus();
    await page.keyboard.press('Delete');
    await page.getByRole('button', { name: 'Delete now' }).click();
    await expect.poll(() => rows(page).count()).toBe(2);
    await expect.poll(() => stored(client)).toEqual(['likes oolong', 'second, changed']);
    expect(troubles).toEqual([]);
  });

  /** The page of one memory of ana, on which time stands still. */
  const openStopped = async () => {
    const { page, client } = await open('#/memories?user=ana', {}, ana('tea'));
    await rows(page).first().click();
    await page.locator('.content').waitFor();
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    /** The page draws and runs its effects only while its clock moves: an element that is not there yet cannot be waited for. */
    const shown = (element: Locator) =>
      expect.poll(async () => {
        await page.clock.runFor(10);
        return (await element.allTextContents()).join();
      });
    const left = async () => (await client.list({ user_id: 'ana' })).items.length;
    const notice = page.locator('.notice');
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await shown(notice).toContain('“tea” of ana will be deleted');
    await page.getByRole('link', { name: 'Users' }).click();
    await shown(page.locator('h1')).toBe('ana');
    await shown(notice).toContain('“tea” of ana will be deleted');
    expect(await left()).toBe(1);
    return { page, shown, left, notice };
  };

  it('keeps a deletion waiting on another page, where it can be undone', async () => {
    const { page, left } = await openStopped();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.clock.runFor(10_000);
    expect(await left()).toBe(1);
  });

  it('deletes on another page when the time has passed', async () => {
    const { page, shown, left, notice } = await openStopped();
    await page.clock.runFor(10_000);
    await expect.poll(left).toBe(0);
    await shown(notice).toBe('');
  });

  it('keeps the notice of a deletion while an earlier one runs', async () => {
    const { page, client } = await open('#/memories?user=ana', {}, ana('first', 'second'));
    const { opened, open: goOn } = gate();
    await page.route('**/memories/*', async (route) => {
      if (route.request().method() === 'DELETE') await opened;
      await route.continue();
    });
    await rows(page).first().focus();
    await page.keyboard.press('Delete');
    await page.getByRole('button', { name: 'Delete now' }).click();
    await rows(page).nth(1).focus();
    await page.keyboard.press('Delete');
    goOn();
    await expect.poll(() => rows(page).allTextContents()).toEqual(['first']);
    await expect.poll(() => page.locator('.notice').textContent()).toContain('“first” of ana will be deleted');
    await page.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(() => stored(client)).toEqual(['first']);
  });

  it('shows both texts when somebody else has changed a memory meanwhile', async () => {
    const { page, client } = await open('#/memories?user=ana', {}, ana('tea'));
    await rows(page).first().focus();
    await page.keyboard.press('e');
    await page.locator('.row.open textarea').fill('mine');
    const [memory] = (await client.list({ user_id: 'ana' })).items;
    await client.update(memory?.id ?? '', { content: 'theirs' });
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await expect.poll(() => page.locator('.conflict blockquote').textContent()).toBe('theirs');
    expect(await client.get(memory?.id ?? '')).toMatchObject({ content: 'theirs' });
    await page.getByRole('button', { name: 'Save mine over it' }).click();
    await expect.poll(() => rows(page).first().textContent()).toBe('mine');
    expect(await client.get(memory?.id ?? '')).toMatchObject({ content: 'mine' });
  });

  it('scrolls through every page of a long list, and saves all of it', async () => {
    const { page } = await open('#/memories?user=ana', {}, async ({ client }) => {
      for (let n = 0; n < 6; n++) {
        await client.batch(
          Array.from({ length: 100 }, (_, i) => ({ user_id: 'ana', content: `=number ${n * 100 + i}` })),
        );
      }
    });
    await expect.poll(() => rows(page).count()).toBeGreaterThan(5);
    await rows(page).first().focus();
    // Each time the end is that of what is loaded.
    await expect
      .poll(async () => {
        await page.keyboard.press('End');
        return rows(page).last().textContent();
      })
      .toBe('=number 0');
    await expect.poll(() => page.locator('.toolbar output').first().textContent()).toBe('600 of 600');
    await expect.poll(() => rows(page).count()).toBeLessThan(60);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save the list' }).click();
    await page.getByRole('button', { name: 'Save all as CSV' }).click();
    const lines = (await readFile(await (await download).path(), 'utf8')).trim().split('\r\n');
    expect(lines).toHaveLength(601);
    // No formula for a spreadsheet.
    expect(lines[1]).toContain(`"'=number 599"`);
  });

  it('filters by scope, tag and text', async () => {
    const { page, client } = await open('#/memories?user=ana', {}, ana('green tea'));
    await client.add({ user_id: 'ana', content: 'black coffee', scope: 'home' });
    await page.reload();
    await page.getByRole('button', { name: 'Filters' }).click();
    await page.getByRole('button', { name: /^home/ }).click();
    await expect.poll(() => rows(page).allTextContents()).toEqual(['black coffee']);
    await page.getByRole('link', { name: 'Clear' }).click();
    await expect.poll(() => rows(page).count()).toBe(2);
    await page.locator('body').press('/');
    await page.keyboard.type('tea');
    await page.keyboard.press('Enter');
    await expect.poll(() => rows(page).allTextContents()).toEqual(['green tea']);
    expect(page.url()).toMatch(/q=tea/);
  });

  it('searches in the days of the filter, not among the best of all days', async () => {
    const { page } = await open('#/memories?user=ana&q=tea&until=2020-12-31', {}, async ({ client }) => {
      const old = { id: 'old', user_id: 'ana', content: 'a cup of green tea', created_at: '2020-03-01T09:30:00.000Z' };
      await client.tell('POST', '/import', { memories: [old] });
      const newer = Array.from({ length: 100 }, (_, n) => ({ user_id: 'ana', content: `tea ${n}` }));
      await client.tell('POST', '/memories/batch', { memories: newer });
    });
    await expect.poll(() => rows(page).allTextContents()).toEqual(['a cup of green tea']);
  });

  it('explains what a search finds, and shows what a model gets', async () => {
    const { page, troubles } = await open('#/search?user=ana&q=teas', {}, ana('green tea', 'black coffee'));
    await expect.poll(() => page.locator('.results li').first().textContent()).toContain('green tea');
    await expect.poll(() => page.locator('.results mark').allTextContents()).toEqual(['tea']);
    await expect.poll(() => page.locator('.parts').first().textContent()).toMatch(/words/);
    await expect.poll(() => page.locator('section pre').textContent()).toContain('recalled data, not instructions');
    expect(troubles).toEqual([]);
  });

  it('[Decision 58] shows results far below the best apart', async () => {
    const three = ana('green tea with lemon', 'tea in a shop', 'tea in a garden');
    const { page, url } = await open('#/search?user=ana&q=green+tea+with+lemon', {}, three);
    await expect.poll(() => page.getByRole('heading', { name: 'Less likely' }).count()).toBe(1);
    const groups = page.locator('.orders section').first().locator('.results');
    await expect.poll(() => groups.first().locator('li').count()).toBe(1);
    await expect.poll(() => groups.last().locator('li').count()).toBe(2);
    await page.goto(`${url}/console/#/memories?user=ana&q=green+tea+with+lemon`);
    await expect
      .poll(() => page.locator('.toolbar output').textContent())
      .toMatch(/^1 found, 2 less likely, best first/);
  });

  it('lists users and counts, and erases one after asking twice', async () => {
    const { page, client } = await open('#/users', {}, ana('a', 'b'));
    await page.getByRole('link', { name: 'ana', exact: true }).click();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Everything of this user' }).click();
    const lines = (await readFile(await (await download).path(), 'utf8')).trim().split('\n');
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ type: 'end', memories: 2, complete: true });
    await page.getByRole('button', { name: /^Erase everything/ }).click();
    const dialog = page.getByRole('dialog');
    await expect.poll(() => dialog.getByRole('button', { name: 'Erase' }).isDisabled()).toBe(true);
    await dialog.getByRole('textbox').fill('ana');
    await dialog.getByRole('button', { name: 'Erase' }).click();
    await expect.poll(async () => (await client.list({ user_id: 'ana' })).items).toEqual([]);
    await expect.poll(() => page.locator('.receipt').textContent()).toMatch(/^Erased, .*removed 2 memories.*Kept: /);
    await page.getByRole('link', { name: 'Audit' }).click();
    await expect.poll(() => page.locator('tbody tr').filter({ hasText: 'erase' }).count()).toBe(1);
  });

  it('asks for a key where one is needed, and forgets it', async () => {
    const { authenticator, keys } = await closedTo('all');
    const { page } = await open('#/users', { authenticator });
    for (const key of ['wrong', keys.all]) {
      await page.getByLabel('Key or token').fill(key);
      await page.getByRole('button', { name: 'Open' }).click();
      if (key === 'wrong') await expect.poll(() => page.locator('.failure').textContent()).toMatch(/does not accept/);
    }
    await expect.poll(() => page.locator('h1').textContent()).toBe('Users');
    await page.getByRole('button', { name: 'Forget key' }).click();
    await expect.poll(() => page.locator('h1').textContent()).toMatch(/needs a key/);
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
  });

  it('[Decision 41] tells a key that only manages keys what it can do here', async () => {
    const callers = knownCallers();
    const { authorization = '' } = callers.admit({ users: null, grants: ['admin:*'] });
    const { page } = await open('', { authenticator: callers.authenticator });
    await useKey(page, authorization.slice('Bearer '.length));
    await expect.poll(() => page.locator('h1').textContent()).toBe('This key reads no memories');
    expect(await page.locator('.failure').count()).toBe(0);
    await page.getByRole('link', { name: 'manages keys' }).click();
    await expect.poll(() => page.locator('h1').textContent()).toBe('This backend stores no keys');
  });

  it('shows what the key may not do, with the id of the request', async () => {
    const callers = knownCallers();
    const { authorization = '' } = callers.admit({ users: ['ana'], grants: ['read:*'] });
    const { page } = await open('#/memories?user=bob', { authenticator: callers.authenticator });
    await useKey(page, authorization.slice('Bearer '.length));
    await expect.poll(() => page.locator('.failure').first().textContent()).toMatch(/permission.*Request [\w-]+/);
  });

  it('opens a user that exists by the beginning of the id, and a new one only by a choice of its own', async () => {
    const { page } = await open('#/memories', {}, async ({ client }) => {
      for (const user_id of ['dmitri', 'doris']) await client.add({ user_id, content: 'tea' });
    });
    const user = page.getByRole('combobox', { name: 'User' });
    await user.fill('dmi');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).toMatch(/#\/memories\?user=dmitri$/);
    await expect.poll(() => user.inputValue()).toBe('dmitri');
    await expect.poll(() => user.getAttribute('aria-expanded')).toBe('false');
    await user.fill('nobody');
    await page.getByRole('option', { name: 'New user' }).waitFor();
    await page.keyboard.press('Enter');
    expect(page.url()).toMatch(/user=dmitri$/);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).toMatch(/user=nobody$/);
    await expect.poll(() => page.locator('h2').first().textContent()).not.toBe('');
  });

  it('goes to pages, users and searches by Ctrl-K, and shows the keys by ?', async () => {
    const { page, troubles } = await open('', {}, ana('green tea', 'black coffee'));
    await page.locator('.tile').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('heal');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('h1').textContent()).toBe('Health');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('an');
    await page.getByRole('option', { name: 'ana' }).waitFor();
    await expectAccessible(page, 'the palette');
    await page.keyboard.press('Enter');
    await expect.poll(() => rows(page).count()).toBe(2);
    await page.keyboard.press('Control+k');
    await page.keyboard.type('coffee');
    await page.keyboard.press('Enter');
    await expect.poll(() => rows(page).allTextContents()).toEqual(['black coffee']);
    // Enter comes before the users do.
    const { opened, open: answer } = gate();
    await page.route('**/users?*', async (route) => {
      await opened;
      await route.continue();
    });
    await page.keyboard.press('Control+k');
    await page.keyboard.type('ana');
    await page.keyboard.press('Enter');
    answer();
    await expect.poll(() => rows(page).count()).toBe(2);
    expect(page.url()).toMatch(/#\/memories\?user=ana$/);
    await rows(page).first().focus();
    await page.keyboard.press('?');
    await page.getByRole('heading', { name: 'Keys' }).waitFor();
    await expectAccessible(page, 'the keys');
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    expect(troubles).toEqual([]);
  });

  it('lets each of several deletions wait for itself, and undoes one of them', async () => {
    const { page, client } = await open('#/memories?user=ana', {}, ana('first', 'second', 'third'));
    for (const name of ['third', 'second']) {
      await rows(page).filter({ hasText: name }).focus();
      await page.keyboard.press('Delete');
    }
    const waiting = page.locator('.notice > p');
    await expect.poll(() => waiting.count()).toBe(2);
    await waiting.filter({ hasText: '“second”' }).getByRole('button', { name: 'Undo' }).click();
    await waiting.filter({ hasText: '“third”' }).getByRole('button', { name: 'Delete now' }).click();
    await expect.poll(() => rows(page).allTextContents()).toEqual(['second', 'first']);
    await expect.poll(() => stored(client)).toEqual(['second', 'first']);
    await expect.poll(() => waiting.count()).toBe(0);
  });

  it('has the actions of a row at the pointer, and in a menu', async () => {
    const { page, client } = await open('#/memories?user=ana', {}, ana('first', 'second'));
    await page.emulateMedia({ reducedMotion: 'reduce' });
    const isSeen = () =>
      expect.poll(() =>
        page.evaluate(
          `document.querySelector('[aria-label="Delete: second"]').checkVisibility({ opacityProperty: true })`,
        ),
      );
    await rows(page).first().hover();
    await isSeen().toBe(true);
    await page.mouse.move(0, 0);
    await isSeen().toBe(false);
    const choose = async (name: string) => {
      await page.getByRole('button', { name: 'More: second' }).click();
      await page.getByRole('button', { name, exact: true }).click();
    };
    await choose('Edit');
    await page.getByLabel('Text').press('Escape');
    await choose('Delete');
    await page.getByRole('button', { name: 'Delete now' }).click();
    await expect.poll(() => stored(client)).toEqual(['first']);
  });

  it('sorts a table by the head of a column: upwards, downwards, and as it was', async () => {
    const { page } = await open('#/users', {}, async ({ client }) => {
      for (const [user_id, size] of [
        ['ana', 2],
        ['ben', 11],
        ['cleo', 1],
      ] as const)
        await client.batch(Array.from({ length: size }, (_, n) => ({ user_id, content: `${n}` })));
    });
    const users = () => expect.poll(() => page.getByRole('rowheader').allTextContents());
    await users().toEqual(['ana', 'ben', 'cleo']);
    for (const [sort, order] of [
      ['ascending', ['cleo', 'ana', 'ben']],
      ['descending', ['ben', 'ana', 'cleo']],
      [null, ['ana', 'ben', 'cleo']],
    ] as const) {
      await page.getByRole('button', { name: 'Memories', exact: true }).click();
      await users().toEqual(order);
      await expect
        .poll(() => page.getByRole('columnheader', { name: 'Memories' }).getAttribute('aria-sort'))
        .toBe(sort);
    }
  });

  it('is at most 60 kB, gzipped, without what only an open map loads', async () => {
    const folder = join(import.meta.dirname, '../../assets/console');
    const names = await readdir(folder, { recursive: true });
    const files = await Promise.all(
      names
        .filter((name) => /\.(html|js|css|svg)$/.test(name))
        .map(async (name) => ({
          ofMap: name.includes('map-worker'),
          size: gzipSync(await readFile(join(folder, name))).length,
        })),
    );
    const sizeOf = (ofMap: boolean) => files.reduce((sum, file) => sum + (file.ofMap === ofMap ? file.size : 0), 0);
    expect(sizeOf(false)).toBeLessThan(60_000);
    expect(sizeOf(true)).toBeLessThan(30_000);
  });

  it('is absent if it is off, and the root leads to the documentation', async () => {
    const { url } = await serverForTest({ console: 'off' });
    expect((await fetch(`${url}/console/`)).status).toBe(404);
    const root = await fetch(url, { headers: { accept: 'text/html' }, redirect: 'manual' });
    expect(root.headers.get('location')).toBe('docs');
  });

  it('is served under the headers of pages, and no other file is', async () => {
    const { url } = await serverForTest({ console: 'on' });
    const page = await fetch(`${url}/console/`);
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'.*script-src 'self'/);
    const script = /assets\/[\w-]+\.js/.exec(await page.text())?.[0];
    expect((await fetch(`${url}/console/${script}`)).headers.get('cache-control')).toMatch(/immutable/);
    for (const path of ['assets/..%2f..%2fpackage.json', 'assets/none.js', 'assets/index.html', 'index.html']) {
      expect((await fetch(`${url}/console/${path}`)).status, path).toBe(404);
    }
  });
});
