import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/** Runs before the page does: remembers what a press of the mouse does something with, and each focus that comes by Tab. */
export const OBSERVE = `{
  const pressed = new Set();
  const add = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (type, ...rest) {
    if (type === 'click') pressed.add(this);
    return add.call(this, type, ...rest);
  };
  const textOf = (...elements) => elements.map((one) => one.textContent).join(' ').trim();
  const nameOf = (element) =>
    element.ariaLabel || textOf(...(element.ariaLabelledByElements ?? []), ...(element.labels ?? []), element);
  const shown = (element) => element.outerHTML.slice(0, 120);
  const focused = new Set();
  const faults = new Set();
  addEventListener('focusin', ({ target }) => {
    focused.add(target);
    // A row of the list has the outline for its link.
    const outlines = [target, target.closest('.row')].filter(Boolean).map((one) => getComputedStyle(one));
    if (!outlines.some((one) => one.outlineStyle !== 'none' && one.outlineWidth !== '0px')) faults.add('no outline: ' + shown(target));
    if (!target.checkVisibility({ opacityProperty: true })) faults.add('not visible: ' + shown(target));
    if (nameOf(target) === '') faults.add('no name: ' + shown(target));
  });
  globalThis.keyboard = {
    start: () => [focused, faults].forEach((set) => set.clear()),
    faults: () => [...faults],
    /** What neither Tab nor another key reaches. Choices have the arrow keys of their field, a dialog has Escape, and the list of the map has what its plane has. */
    missing: () =>
      [...(document.querySelector('dialog[open]') ?? document).querySelectorAll('*')]
        .filter((one) => pressed.has(one) || one.matches('a[href], button, input, select, textarea, summary, [tabindex="0"]'))
        .filter((one) => one.checkVisibility() && !one.disabled && !one.matches('[role=option], dialog, .plane svg'))
        .filter((one) => !focused.has(one))
        .map(shown),
  };
}`;

/** Tabs that one element takes at most, such as a field for a time. */
const MOST_TABS = 10;

/** Tab reaches whatever a mouse could press on the page or in its dialog, and each has a name and shows the focus. */
export async function expectKeyboard(page: Page, what: string): Promise<void> {
  const missing = () => page.evaluate<string[]>('keyboard.missing()');
  await page.evaluate('keyboard.start()');
  for (let tabs = MOST_TABS * (await missing()).length; tabs > 0 && (await missing()).length > 0; tabs -= MOST_TABS)
    for (let n = 0; n < MOST_TABS; n++) await page.keyboard.press('Tab');
  expect(await missing(), what).toEqual([]);
  expect(await page.evaluate('keyboard.faults()'), what).toEqual([]);
}

const hasFocus = async (element: Locator) => (await element.and(element.page().locator(':focus')).count()) > 0;

/** Presses Tab until this has the focus. */
export async function tabTo(element: Locator): Promise<void> {
  await element.waitFor();
  for (let tabs = 0; tabs < 200; tabs++) {
    if (await hasFocus(element)) return;
    await element.page().keyboard.press('Tab');
  }
  expect.fail(`Tab does not reach ${element}`);
}

/** Presses it with the keyboard alone. */
export async function press(element: Locator): Promise<void> {
  await tabTo(element);
  await element.page().keyboard.press('Enter');
}

/** Waits until the page has moved the focus there. */
export const expectFocus = (element: Locator) => expect.poll(() => hasFocus(element)).toBe(true);
