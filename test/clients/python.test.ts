import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { blocks, read } from '../docs/markdown.ts';
import { serverForTest } from '../support/server.ts';

const run = promisify(execFile);
const FOLDER = join(import.meta.dirname, '../../clients/python');

function has(command: string): boolean {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!has('/usr/bin/python3'))('the Python client', () => {
  it('passes its tests against a real gateway and a server of faults', async () => {
    const { url } = await serverForTest();
    const env = { PATH: process.env.PATH, OMP_URL: url, PYTHONDONTWRITEBYTECODE: '1' };
    const { stderr } = await run('/usr/bin/python3', ['-m', 'unittest', '-v'], { cwd: FOLDER, env });
    expect(stderr).toMatch(/Ran 18 tests.*OK/s);
  });

  it('runs the code of its page', async () => {
    const { url } = await serverForTest();
    const [code] = blocks(read('docs/integrations/python.md')).filter(({ language }) => language === 'py');
    const script = (code?.code ?? '').replace('http://127.0.0.1:8080', url);
    const env = { PATH: process.env.PATH, PYTHONPATH: FOLDER, PYTHONDONTWRITEBYTECODE: '1' };
    expect((await run('/usr/bin/python3', ['-c', script], { env })).stdout).toContain('likes green tea');
  });

  it.skipIf(!has('/usr/bin/mypy'))('is typed, for Python 3.9 as well', async () => {
    const cache = await mkdtemp(join(tmpdir(), 'omp-mypy-'));
    onTestFinished(() => rm(cache, { recursive: true }));
    const options = ['--strict', '--python-version', '3.9', '--cache-dir', cache];
    const { stdout } = await run('/usr/bin/mypy', [...options, 'omp_gateway_client.py', 'test_client.py'], {
      cwd: FOLDER,
    });
    expect(stdout).toContain('no issues found in 2 source files');
  });
});
