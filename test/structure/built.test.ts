import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../process/gateway.ts';

test('npm start builds after a change of what the sources hold, and after a build that did not end or amid which they changed, not of their times', () => {
  const root = temporaryFolder();
  const path = (name: string) => join(root, name);
  const write = (name: string, text: string) => {
    mkdirSync(dirname(path(name)), { recursive: true });
    writeFileSync(path(name), text);
  };
  write('scripts/built.js', '');
  copyFileSync('scripts/built.js', path('scripts/built.js'));
  const run = (...step: string[]) => spawnSync(process.execPath, [path('scripts/built.js'), ...step]).status;
  const names = /const (?:INPUTS|OUTPUTS) = \[[^\]]*\]/g;
  const listed = readFileSync('scripts/built.js', 'utf8').match(names)?.join() ?? '';
  for (const [, name = ''] of listed.matchAll(/'(.+?)'/g))
    write(/\.\w+$|LICENSE$/.test(name) ? name : `${name}/a`, 'old');
  write('package.json', '{ "type": "module" }');

  expect(run()).toBe(1);
  expect([run('begin'), run('end'), run()]).toEqual([0, 0, 0]);
  utimesSync(path('src/a'), 1, 1);
  expect(run()).toBe(0);
  write('src/a', 'new');
  expect(run()).toBe(1);
  write('src/a', 'old');
  expect(run()).toBe(0);
  write('src/deep/b', '');
  expect(run()).toBe(1);
  run('begin');
  write('src/deep/b', 'edited during the build');
  run('end');
  expect(run()).toBe(1);
  expect([run('begin'), run('end'), run()]).toEqual([0, 0, 0]);
  rmSync(path('assets'), { recursive: true });
  expect(run()).toBe(1);
  write('assets/console/index.html', '');
  write('assets/swagger-ui/LICENSE', '');
  expect(run()).toBe(0);
  run('begin');
  expect(run()).toBe(1);
});
