import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dataFolder, runProgram, temporaryFolder } from '../process/gateway.ts';
import { DATABASE_DAMAGES, FOLDER_DAMAGES } from '../support/damaged-folder.ts';
import { brokenConnection } from '../support/ledger.ts';
import { startSubject } from './subject.ts';
import { survive } from './survive.ts';

const DAMAGES = Object.entries({ ...FOLDER_DAMAGES, ...DATABASE_DAMAGES });

test('a killed gateway does not start on a damaged data folder, and has everything acknowledged on the restored one', async () => {
  const OMP_DATA_DIR = await dataFolder();
  const env = { OMP_DATA_DIR, OMP_SEARCH_MODE: 'keyword' };
  const subject = await startSubject({ env, clients: 4, excuse: brokenConnection });
  await survive(subject.load, {
    name: `embedded: killed (-9), then ${DAMAGES.length} damages to the data folder, each restored`,
    async strike() {
      await subject.gateway.kill();
      const backup = join(temporaryFolder(), 'backup');
      cpSync(OMP_DATA_DIR, backup, { recursive: true });
      for (const [what, [damage, error]] of DAMAGES) {
        damage(OMP_DATA_DIR);
        const { status, stderr } = await runProgram({ env });
        expect(status, what).toBe(1);
        expect(stderr, what).toMatch(error);
        rmSync(OMP_DATA_DIR, { recursive: true });
        cpSync(backup, OMP_DATA_DIR, { recursive: true });
      }
      await subject.again();
    },
  });
  expect((await subject.gateway.stop()).status).toBe(0);
});
