import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { eventually } from '../support/eventually.ts';
import { freshUser } from '../support/subject.ts';
import { clientAt, docker, inEngine, type Project, ready } from './engine.ts';

const MB = 1024 ** 2;
/** A limit of memory exceeds the measured peak by a third: other contents, platforms and versions take more. */
const MARGIN = 4 / 3;

/** What the pods of deploy/kubernetes get. */
const podMemory = (): number => {
  const deployment = parse(readFileSync('deploy/kubernetes/deployment.yaml', 'utf8')) as {
    spec: { template: { spec: { containers: [{ resources: { limits: { memory: string } } }] } } };
  };
  return Number.parseInt(deployment.spec.template.spec.containers[0].resources.limits.memory, 10) * 1024 ** 3;
};

const unnamedVolumes = async () =>
  (await docker('volume', 'ls', '--quiet')).split('\n').filter((name) => /^[0-9a-f]{64}$/.test(name));

/** What holds for each gateway of docker-compose.yml. `keeps`: its memories outlive its container. */
export function gatewaySuite({ compose, gateway, inspect, logs }: Project, service: string, keeps: boolean): void {
  let key: string | undefined;
  const client = clientAt(() => key);
  const user_id = freshUser();
  const stored = async () => (await client.list({ user_id, limit: 100 })).items.map(({ id }) => id).sort();

  let unnamed: readonly string[];

  it('starts, and is healthy', async () => {
    unnamed = await unnamedVolumes();
    await compose('up', '--detach', '--wait', service);
    await ready();
  });

  it('adds, searches, lists, and makes contexts', async () => {
    for (const content of ['prefers pnpm over npm', 'lives in Lisbon with two cats', 'is allergic to peanuts'])
      await client.add({ user_id, content, scope: 'home/notes' });
    // Pinecone finds records a moment after they were stored.
    await eventually(async () => {
      const [first] = await client.search({ user_id, q: 'which package manager does she use?' });
      expect(first?.memory.content).toContain('pnpm');
    });
    expect(await stored()).toHaveLength(3);
    const { text } = await client.context({ user_id, query: 'how to install a package', token_budget: 300 });
    expect(text).toContain('pnpm');
  });

  it('writes to /tmp and its volume only, as a user without privileges', async () => {
    const [status, denied] = await Promise.all([
      compose('exec', '-T', service, 'cat', '/proc/1/status'),
      compose('exec', '-T', service, 'touch', '/tmp/file', '/app/file').catch(String),
    ]);
    expect(denied).toMatch(/'\/app\/file': Read-only file system/);
    expect(denied).not.toContain("touch '/tmp");
    expect(status).toMatch(/^Uid:\s1000\s1000\s1000\s1000$/m);
    expect(status).toMatch(/^CapBnd:\s0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s1$/m);
    expect(status).toMatch(/^Seccomp:\s2$/m);
  });

  it('is published to loopback only', async () => {
    // The address of the engine's only interface.
    await expect(fetch('http://10.0.2.100:8080/livez')).rejects.toThrow();
  });

  it('takes at most three quarters of the memory that it may', async () => {
    const content = 'word '.repeat(400);
    const load = async (n: number) => {
      for (let i = 0; i < 12; i++) await client.add({ user_id: `load-${n}`, content: `${content}${n} ${i}` });
      await client.search({ user_id: `load-${n}`, q: content.slice(0, 900) });
    };
    await Promise.all(Array.from({ length: 8 }, (_, n) => load(n)));
    const [, kilobytes = ''] =
      /^VmHWM:\s+(\d+) kB$/m.exec(await compose('exec', '-T', service, 'cat', '/proc/1/status')) ?? [];
    const peak = Number(kilobytes) * 1024;
    const limit = Number(await inspect(service, '{{.HostConfig.Memory}}'));
    process.stdout.write(`${service}: at most ${Math.round(peak / MB)} MiB of ${limit / MB}\n`);
    // Less than the model alone would be another process.
    expect(peak).toBeGreaterThan(100 * MB);
    expect(peak * MARGIN).toBeLessThan(limit);
    expect(peak * MARGIN).toBeLessThan(podMemory());
  });

  if (keeps) {
    it('gets keys from its command line, and closes', async () => {
      const printed = await gateway(service, 'keys', 'create', 'test', '--grant', 'read:*', '--grant', 'write:*');
      const created = /omp_\w+_[\w-]+/.exec(printed)?.[0];
      await eventually(async () => expect((await client.ask('/memories', { user_id })).status).toBe(401));
      key = created;
      expect(await stored()).toHaveLength(3);
    });

    it('is in order for doctor', async () => {
      expect(await gateway(service, 'doctor')).not.toMatch(/error/i);
    });

    it.each<[string, () => Promise<unknown>]>([
      ['a restart', () => compose('restart', service)],
      ['kill -9', killed],
      ['its replacement', () => compose('up', '--detach', '--force-recreate', '--no-deps', service)],
    ])('has every acknowledged memory after %s', async (_, end) => {
      await client.add({ user_id, content: 'just before the end' });
      const before = await stored();
      await end();
      await ready();
      expect(await stored()).toEqual(before);
    });
  }

  /** Docker starts it again. */
  async function killed(): Promise<void> {
    const pid = await inspect(service, '{{.State.Pid}}');
    await inEngine('bash', '-c', `kill -KILL ${pid}`);
    await eventually(async () => expect(await inspect(service, '{{.State.Pid}}')).not.toMatch(`^(0|${pid})$`));
  }

  it('answers the request in progress before it stops, with status 0', async () => {
    const body = JSON.stringify({ user_id, content: 'sent while it stopped' });
    const headers = { 'content-type': 'application/json', 'content-length': body.length, expect: '100-continue' };
    const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const sent = request({ port: 8080, path: '/memories', method: 'POST', headers: { ...headers, ...authorization } });
    sent.flushHeaders();
    await once(sent, 'continue');
    const stopping = compose('stop', service);
    await eventually(async () => expect(await logs(service)).toContain('"msg":"stopping"'));
    sent.end(body);
    const [{ statusCode }] = await once(sent, 'response');
    expect(statusCode).toBe(201);
    await stopping;
    expect(await inspect(service, '{{.State.ExitCode}} {{.State.OOMKilled}}')).toBe('0 false');
  });

  it('leaves no volume without a name', async () => {
    await compose('down');
    expect(await unnamedVolumes()).toEqual(unnamed);
  });
}
