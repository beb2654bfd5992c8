import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const REPORT = 'test/package/provider-api.txt';
const CHANGED = `the public contract is not as in ${REPORT}.
Update the report with \`npx vitest run test/package/provider-api.test.ts -u\`, and read its difference as the author of a provider of each version:
- A new optional member, capability or export is an addition. Describe it in docs/providers.md.
- If a provider that passed before could fail to compile, to start or to work, add to PROVIDER_VERSIONS in src/contract/define.ts, say in
  CHANGELOG.md what authors must do, and accept the version before, if the gateway still can.`;

it('[Decision 50] the public contract is as reported', async () => {
  const declarations = ['src/provider', 'test/conformance/provider-tests'].map((entry) => {
    const text = readFileSync(join(ROOT, `dist/${entry}.d.ts`), 'utf8');
    return text.replaceAll(/^ *\/\*\*.*?\*\/\n/gms, '');
  });
  await expect(declarations.join('\n'), CHANGED).toMatchFileSnapshot(join(ROOT, REPORT));
});
