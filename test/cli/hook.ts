import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll } from 'vitest';
import { runHooks } from '../../src/cli/hooks.ts';
import { commandHere } from '../support/command.ts';

/** The URL of a server on a free port, once it listens. */
export async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Long enough for any machine; the tests of the deadline hold the default. */
export const PATIENT = ['--deadline', '10000'];

interface Run {
  readonly argv: readonly string[];
  readonly input: object | string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Where the hooks of a file of tests keep what they must. */
export const state = mkdtempSync(join(tmpdir(), 'omp-h-'));
afterAll(() => rmSync(state, { recursive: true }));

/** Runs `omp-gateway hooks run`. */
export function hook({ argv, input, env = {} }: Run) {
  const text = typeof input === 'string' ? input : JSON.stringify(input);
  const stdin = input instanceof Readable ? input : Readable.from([Buffer.from(text)]);
  return commandHere((terminal) => runHooks(['run', ...argv], { ...terminal, stdin, cwd: () => '/' }), {
    XDG_STATE_HOME: state,
    ...env,
  });
}
