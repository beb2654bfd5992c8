import { existsSync } from 'node:fs';
import { PATIENCE_MS } from './full.ts';

export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const hasChromium = existsSync(CHROMIUM);
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
export const CHROMIUM_OPTIONS = { executablePath: CHROMIUM, args: ARGUMENTS, timeout: PATIENCE_MS };
