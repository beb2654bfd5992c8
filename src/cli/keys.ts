import { gatewayCall, type KeyStore, type Log, OmpError } from '#contract';
import { newKey } from '../auth/credentials.ts';
import { ConfigError, type Environment } from '../config/given.ts';
import { loadConfig } from '../config/load.ts';
import { providerOptions } from '../config/provider-options.ts';
import { openKeys } from '../registry.ts';
import { explainError } from './explain-error.ts';
import { KEYS_USAGE, type KeyRequest, type KeysArguments, parseKeysArguments } from './keys-arguments.ts';
import { keysJson, keysTable, toConfigured } from './keys-output.ts';

export interface Terminal {
  readonly env: Environment;
  readonly stdout: Output;
  readonly stderr: Output;
}
interface Output {
  write(text: string): unknown;
}

/**
 * `omp-gateway keys`: does what the arguments after `keys` ask for. What was asked for goes to standard output, the
 * rest to standard error. Returns the exit status: 0, 1 when it failed, 2 when the arguments make no sense.
 */
export async function runKeys(argv: readonly string[], terminal: Terminal): Promise<number> {
  const asked = parseKeysArguments(argv, Date.now());
  const { stdout, stderr } = terminal;
  if (asked.action === 'help') stdout.write(KEYS_USAGE);
  else if (asked.action === 'print') print(asked.request, terminal);
  else if (asked.action === 'mistake') {
    tell(stderr, asked.message);
    return 2;
  } else {
    const trouble = await withStore(asked, terminal);
    if (trouble !== undefined) {
      tell(stderr, trouble);
      return 1;
    }
  }
  return 0;
}

const tell = (stderr: Output, message: string) => stderr.write(`omp-gateway: ${message}\n`);

const INSTEAD = `Keys may stand in the configuration instead:
  omp-gateway keys create NAME --grant GRANT --print`;

const SHOWN_ONCE = `This is the only time the key is shown. Clients send it as
  Authorization: Bearer <key>
`;
const FIRST = 'It is the first key: gateways on this database stop answering callers without one within seconds.\n';

type Stored = Extract<KeysArguments, { action: 'create' | 'list' | 'revoke' }>;

/** Returns what went wrong. */
async function withStore(asked: Stored, terminal: Terminal): Promise<string | undefined> {
  const { env, stderr } = terminal;
  try {
    const { config, warnings } = loadConfig({ flags: asked.flags, env });
    for (const warning of warnings) tell(stderr, warning);
    const { provider, data_dir } = config;
    const store = await openKeys(provider, providerOptions(config), { data_dir, log: logTo(stderr) });
    if (!store) return `the provider ${provider} keeps no keys. ${INSTEAD}`;
    return await run(asked, store, terminal).finally(store.close);
  } catch (error) {
    // What is told in full by its message has no causes to look for.
    const complete = error instanceof ConfigError || (error instanceof OmpError && error.code === 'invalid_request');
    return complete ? error.message : explainError(error);
  }
}

async function run(asked: Stored, store: KeyStore, { stdout, stderr }: Terminal): Promise<string | undefined> {
  const call = gatewayCall('keys');
  if (asked.action === 'create') {
    const { id, hash, key } = newKey();
    const first = !(await store.hasAny(call));
    await store.create({ id, hash, ...asked.request }, call);
    stdout.write(`${key}\n`);
    stderr.write(first ? SHOWN_ONCE + FIRST : SHOWN_ONCE);
  } else if (asked.action === 'list') {
    const keys = await store.list(call);
    stdout.write(asked.json ? keysJson(keys) : keysTable(keys, Date.now()));
  } else {
    const revoked = await store.revoke(asked.nameOrId, call);
    if (!revoked) return 'no stored key has this name or id; a key of the configuration is revoked by taking it out';
    stdout.write(`${revoked.id} is revoked since ${revoked.revoked_at}\n`);
    stderr.write('Gateways refuse it within seconds.\n');
  }
  return undefined;
}

function print(request: KeyRequest, { stdout, stderr }: Terminal): void {
  const fresh = newKey();
  const configured = JSON.stringify(toConfigured(request, fresh));
  stdout.write(`${fresh.key}\n\nauth:\n  keys:\n    - ${configured}\n`);
  stderr.write(`${SHOWN_ONCE}The gateway needs only the lines below it: they belong into its configuration file. In the environment:
  OMP_AUTH_KEYS=[${configured}]
`);
}

const logTo = (stderr: Output): Log => {
  const line = (_fields: object, message: string) => void tell(stderr, message);
  return { info: () => {}, warn: line, error: line };
};
