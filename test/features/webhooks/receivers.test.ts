import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newSecret } from '../../../src/features/webhooks/secrets.ts';
import { signedHeaders } from '../../../src/features/webhooks/signature.ts';
import { blocks, ROOT, read } from '../../docs/markdown.ts';
import { temporaryFolder, watch } from '../../process/gateway.ts';
import { eventually } from '../../support/eventually.ts';
import { openGateway, openMemoryStore } from './gateway.ts';

const PYTHON = '/usr/bin/python3';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Runs the only block of a language in docs/webhooks.md as a program. */
function startReceiver(language: string, file: string, env: Readonly<Record<string, string>>) {
  const [block, ...others] = blocks(read('docs/webhooks.md')).filter((one) => one.language === language);
  expect([block === undefined, others]).toEqual([false, []]);
  const folder = temporaryFolder();
  writeFileSync(join(folder, file), block?.code ?? '');
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return watch(
    spawn(language === 'js' ? process.execPath : PYTHON, [file], {
      cwd: folder,
      env: { PATH: process.env.PATH, PYTHONPATH: join(ROOT, 'test/features/webhooks/stand-in'), ...env },
    }),
  );
}

it.for([
  ['js', 'receiver.mjs'],
  ['python', 'receiver.py'],
] as const)(
  '[Decision 52] the receiver of docs/webhooks.md in %s works as written',
  async ([language, file], { skip }) => {
    skip(language === 'python' && !existsSync(PYTHON), `no ${PYTHON}`);
    const gateway = openGateway(await openMemoryStore());
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;
    const { webhook, secret } = await gateway.create({ url });
    const receiver = startReceiver(language, file, { WEBHOOK_SECRET: secret, PORT: String(port) });
    const client = gateway.as();
    const first = await client.add({ user_id: 'ana', content: 'x' });
    await receiver.output(new RegExp(`^memory.add ana ${first.id}$`, 'm'));

    const post = (id: string, by: string) => {
      const body = JSON.stringify({ type: 'memory.add', timestamp: '', data: { user_id: 'ben', id } });
      return fetch(url, { method: 'POST', body, headers: signedHeaders({ id, body }, [by], Date.now()) });
    };
    expect((await post('msg_forged', newSecret())).status).toBe(400);
    expect([(await post('msg_twice', secret)).status, (await post('msg_twice', secret)).status]).toEqual([204, 204]);

    const last = await client.add({ user_id: 'ana', content: 'y' });
    await receiver.output(new RegExp(`^memory.add ana ${last.id}$`, 'm'));
    expect(receiver.printed().match(/ben/g)).toHaveLength(1);
    expect(receiver.printed()).not.toContain('forged');
    await eventually(async () =>
      expect((await gateway.find(webhook.id)).deliveries[0]).toMatchObject({ outcome: 'delivered', status: 204 }),
    );
  },
);
