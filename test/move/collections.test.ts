import { expect, onTestFinished, test } from 'vitest';
import { DATABASES } from '../collections/databases.ts';
import { dataFolder, runProgram, startGateway } from '../process/gateway.ts';

const VECTORS = { OMP_SEARCH_MODE: 'vector' };
const onMemory = async () => startGateway({ env: { OMP_PROVIDER: 'memory', ...VECTORS } });

test.for(DATABASES)(
  '[Decision 43] memories move to $name and back with their ids and times',
  async ({ provider, absent, open }, { skip }) => {
    skip(absent !== '', absent);
    const database = await open();
    onTestFinished(() => void database.close());
    const env = { ...VECTORS, ...database.env, OMP_PROVIDER: provider.name, OMP_DATA_DIR: await dataFolder() };
    const [source, target] = [await onMemory(), await onMemory()];
    for (const user_id of ['ana', 'ben']) {
      const memories = Array.from({ length: 60 }, (_, n) => ({
        ...{ user_id, content: `note ${n}`, tags: n % 2 ? ['odd'] : [], scope: n % 3 ? 'a/b' : null, 'x-n': { n } },
      }));
      expect(await source.client.tell('POST', '/memories/batch', { memories })).toMatchObject({ status: 200 });
    }
    const move = async (...args: readonly string[]) => {
      const { status, stdout, stderr } = await runProgram({ args, env });
      expect(status, `${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
      return stdout;
    };
    await move('migrate', '--from', source.url, '--to', 'config');
    expect(await move('verify', source.url, 'config')).toContain('No memory differs.');
    await move('migrate', '--from', 'config', '--to', target.url);
    expect(await move('verify', source.url, target.url)).toContain('No memory differs.');
  },
);
