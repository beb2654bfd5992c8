import { PATIENCE_MS } from './full.ts';

const CHROMIUM = process.env.TEST_CHROMIUM;
export const hasChromium = CHROMIUM !== undefined;
/** Why tests are skipped. */
export const NO_CHROMIUM = 'skipped: no TEST_CHROMIUM, which names the program';
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** To launch it, however long that takes. */
export const CHROMIUM_OPTIONS = {
  ...(CHROMIUM && { executablePath: CHROMIUM }),
  args: ARGUMENTS,
  timeout: PATIENCE_MS,
};
