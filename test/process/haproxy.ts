import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder, watch } from './gateway.ts';
import { freePort } from './postgres-cluster.ts';

const PROGRAM = (process.env.PATH ?? '')
  .split(':')
  .concat('/usr/sbin')
  .map((folder) => join(folder, 'haproxy'))
  .find((path) => existsSync(path));

export const NO_HAPROXY = PROGRAM === undefined ? 'haproxy is not installed' : '';

export interface HaProxy {
  readonly url: string;
  /** Resolves when HAProxy uses the server on this port. */
  up(port: number): Promise<void>;
}

/**
 * HAProxy in front of the gateways on these ports, killed after the test. It keeps connections, checks `/readyz` ten times
 * a second, and repeats a request only if no connection could be made.
 */
export async function startHaProxy(ports: readonly number[]): Promise<HaProxy> {
  const [front, stats] = [await freePort(), await freePort()];
  const configuration = join(temporaryFolder(), 'haproxy.cfg');
  const servers = ports.map((port) => `  server on-${port} 127.0.0.1:${port} check`);
  writeFileSync(
    configuration,
    `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout check 5s
frontend front
  bind 127.0.0.1:${front}
  default_backend gateways
frontend stats
  bind 127.0.0.1:${stats}
  stats enable
  stats uri /
backend gateways
  balance roundrobin
  http-reuse always
  retry-on conn-failure
  option redispatch
  option httpchk GET /readyz
  http-check expect status 200
  default-server inter 100ms fall 1 rise 1
${servers.join('\n')}
`,
  );
  const proxy = watch(spawn(PROGRAM as string, ['-f', configuration, '-db'], { stdio: ['ignore', 'pipe', 'pipe'] }));
  let ended: string | undefined;
  void proxy.ended.then(({ stderr }) => {
    ended = stderr;
  });
  const stateOf = async (port: number): Promise<string> => {
    if (ended !== undefined) throw new Error(`haproxy ended: ${ended}`);
    const table = await fetch(`http://127.0.0.1:${stats}/;csv`).then(
      (response) => response.text(),
      () => '',
    );
    return table.split('\n').find((line) => line.startsWith(`gateways,on-${port},`)) ?? '';
  };
  return {
    url: `http://127.0.0.1:${front}`,
    async up(port) {
      while (!(await stateOf(port)).includes(',UP,')) await sleep(20);
    },
  };
}
