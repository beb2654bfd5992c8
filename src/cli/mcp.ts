import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Call, type Log, OmpError, VERBS } from '#contract';
import { loadConfig } from '../config/load.ts';
import { ConfigError, type Environment } from '../config/mistakes.ts';
import type { Config } from '../config/settings.ts';
import { ALL_GRANTS, type Principal } from '../core/grants.ts';
import { DEFAULT_TOOLS } from '../mcp/names.ts';
import { overHttp, remoteCapabilities } from '../mcp/over-http.ts';
import type { Supported } from '../mcp/server.ts';
import { type OpenedStore, shareStore } from '../mcp/shared-store.ts';
import { inProcess, type UserMemories } from '../mcp/tools.ts';
import type { Commands, OpenStore } from './command.ts';
import { COMMON_OPTIONS, COMMON_USAGE, configFlags, type Flags } from './options.ts';
import { explainError, runCommand, type Terminal, terminalLog } from './terminal.ts';
import { requireUserName } from './user-name.ts';

/** What `omp-gateway mcp --help` prints: at most 80 columns wide, ends with a newline. */
const MCP_USAGE = `Usage: omp-gateway mcp [--url URL] [--user USER] [options]

Serves the memories of one user as tools of an agent: the Model Context Protocol
over standard input and output, for clients that start their servers. With a
URL it asks that gateway; without, it opens the configured store itself, by
default the embedded Postgres in ~/.omp. Several clients on this machine share
it: the first one opens it, and when that one ends, another does.

Options:
  --url URL           The gateway (OMP_URL). Its key, if it needs one: OMP_KEY
  --user USER         Whose memories (OMP_USER_ID; default: your user name here)
${COMMON_USAGE}

Exit status: 0: the client closed the connection; 1: it failed; 2: wrong
arguments. Messages go to standard error.
`;

const OPTIONS = { ...COMMON_OPTIONS, url: { type: 'string' }, user: { type: 'string' } } as const;

/** The memories of the tools, and what to close at the end. */
interface Reached {
  readonly memories: UserMemories;
  /** Never rejects. */
  readonly supported: Promise<Supported>;
  close(): Promise<void>;
}

/** `omp-gateway mcp`. Returns the exit status: 0; 1: it failed; 2: wrong arguments. */
export const runMcp = (argv: readonly string[], terminal: Terminal, openStore: OpenStore): Promise<number> =>
  runCommand('mcp', MCP_USAGE, terminal, async () => {
    const { env } = terminal;
    const { OMP_URL, OMP_KEY: key, OMP_USER_ID } = env;
    const { values } = parseArgs({ args: [...argv], options: OPTIONS });
    if (values.help) return 'help';
    const flags = configFlags(values);
    const log = terminalLog(terminal);
    const { config } = loadConfig({ flags, env: withHome(env, flags) });
    const url = values.url ?? OMP_URL;
    const user_id = values.user ?? (OMP_USER_ID || requireUserName());
    if (url && !/^https?:\/\//.test(url)) throw new ConfigError(['--url must be an http:// or https:// URL']);
    // Before anything else: a client gives up that waits for its first answer.
    const { serveTools } = await import('../mcp/stdio.ts');
    const { memories, supported, close } = url
      ? remote({ url, key: key || undefined, user_id, timeout_ms: config.request_timeout_ms }, log)
      : local(config, user_id, openStore, log);
    try {
      const caller = { memories: () => memories, toError: (thrown: unknown) => shown(thrown, log) };
      const { tools = DEFAULT_TOOLS } = config.mcp;
      await serveTools({ tools, supported }, caller, ({ message }) => log.warn({}, message));
    } finally {
      await close();
    }
    return 0;
  });

/** Clients start their servers in any folder, so the default data folder is in the home folder. */
const withHome = (env: Environment, flags: Flags): Environment =>
  env.OMP_CONFIG || flags.config || env.OMP_DATA_DIR ? env : { ...env, OMP_DATA_DIR: join(homedir(), '.omp') };

/** What is offered while nothing else is known. */
const EVERYTHING: Supported = { verbs: VERBS, features: {} };

function remote(options: Parameters<typeof overHttp>[0], log: Log): Reached {
  // The gateway may start later.
  const supported = remoteCapabilities(options).catch((error: Error) => {
    log.warn({}, `${options.url} does not answer yet (${error.message}); all tools are offered`);
    return EVERYTHING;
  });
  return { memories: overHttp(options), supported, close: async () => {} };
}

/** Opens the store meanwhile; calls wait for it. */
function local(config: Config, user_id: string, openStore: OpenStore, log: Log): Reached {
  const isEmbedded = config.provider === 'postgres' && config.postgres.url === undefined;
  const store = shareStore({
    // Other stores take several processes.
    data_dir: isEmbedded ? config.data_dir : undefined,
    open: () => openMemories(config, openStore, log),
    toError: (thrown) => shown(thrown, log),
    max_bytes: config.max_request_bytes,
    max_silence_ms: config.request_timeout_ms + 5_000,
    idempotent: config.stores.length === 0,
  });
  const opened = store.ready().then(
    ({ supported = EVERYTHING }) => supported,
    (error: unknown) => {
      log.error({}, explainError(error));
      return EVERYTHING;
    },
  );
  const features = { versions: config.versions.keep === 'on' };
  const supported = isEmbedded ? Promise.resolve({ verbs: VERBS, features }) : opened;
  return { memories: store.memoriesOf(user_id), supported, close: store.close };
}

async function openMemories(config: Config, openStore: OpenStore, log: Log): Promise<OpenedStore> {
  const { gate, close } = await openStore(config, log).catch((cause: Error) => {
    // The agent and its store belong to one person.
    throw new OmpError('provider_error', `the memories cannot be opened: ${cause.message}`, { cause: cause.cause });
  });
  const callOf = (principal: Principal) => (cancelled: AbortSignal) => {
    const signal = AbortSignal.any([cancelled, AbortSignal.timeout(config.request_timeout_ms)]);
    return new Call(randomUUID(), principal, signal);
  };
  return {
    memoriesOf(user_id) {
      const principal: Principal = { id: 'mcp', app: 'omp-gateway mcp', users: [user_id], grants: ALL_GRANTS };
      return inProcess({ session: gate.session(principal, 'mcp'), user_id, callOf: callOf(principal) });
    },
    supported: gate.description,
    close,
  };
}

/** The error that the agent gets; causes go to standard error. */
function shown(thrown: unknown, log: Log): OmpError {
  const error =
    thrown instanceof OmpError ? thrown : new OmpError('provider_error', 'the tool failed', { cause: thrown });
  if (error.cause !== undefined) log.warn({}, explainError(error));
  return error;
}

export const commands: Commands = { mcp: runMcp };
