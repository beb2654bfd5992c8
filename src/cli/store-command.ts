import { withStore } from '../config/mounted-stores.ts';
import type { Config } from '../config/settings.ts';
import { ALL_GRANTS, type Principal } from '../core/grants.ts';
import { type GatewayStore, openStore } from '../move/store.ts';
import type { Command, OpenStore } from './command.ts';
import { isStoreName, type Run } from './move-run.ts';
import { configFlags, configOf } from './options.ts';
import { showProgress } from './progress.ts';
import { parsed, type StoreArguments, type StoreRequest } from './store-arguments.ts';
import { Mistake, runCommand, type Terminal, terminalLog, untilSignal } from './terminal.ts';

/** A command that asks stores, here or over HTTP, by the client. */
interface StoreCommand extends StoreArguments {
  /** What `--help` prints: at most 80 columns wide, ends with `END`. */
  readonly usage: string;
  /** Returns the exit status. */
  run(request: StoreRequest, run: Run): Promise<number>;
}

/** It returns the exit status: 0; 1: it failed, was stopped, or something was rejected or differs; 2: wrong arguments. */
export const storeCommand =
  ({ usage, run: work, ...expected }: StoreCommand): Command =>
  (argv, terminal, openLocal, command) =>
    runCommand(command, usage, terminal, async () => {
      const request = parsed(command, expected, argv);
      if (!request) return 'help';
      const progress = showProgress(terminal.stderr);
      const say = (line: string) => {
        progress.end();
        terminal.stderr.write(`${line}\n`);
      };
      const stores = createOpener(request, { terminal, openLocal, say });
      let describe = () => 'nothing was done yet';
      const onStop = (next: typeof describe) => {
        describe = next;
      };
      const run = { open: stores.open, terminal, progress: progress.show, end: progress.end, say, onStop };
      try {
        return await untilSignal((signal) =>
          work(request, { ...run, signal }).catch((error: unknown) => {
            throw signal.aborted ? new Error(`stopped: ${describe()}`) : error;
          }),
        );
      } finally {
        progress.end();
        await stores.close();
      }
    });

/** Opens stores by their names, and closes them together. */
function createOpener(
  { command, values }: StoreRequest,
  { terminal, openLocal, say }: { terminal: Terminal; openLocal: OpenStore } & Pick<Run, 'say'>,
) {
  const opened: GatewayStore[] = [];
  const { OMP_KEY, OMP_FROM_KEY, OMP_TO_KEY } = terminal.env;
  const local = async (name: string): Promise<GatewayStore> => {
    const [suffix = '', mounted] = /#([a-z][a-z0-9-]{0,31})$/.exec(name) ?? [];
    const source = name.slice(0, name.length - suffix.length);
    const file = source.startsWith('config:') ? source.slice('config:'.length) : undefined;
    const [flags, from] = file === undefined ? [configFlags(values), terminal.env] : [{ config: file }, {}];
    const all = configOf(flags, { ...terminal, env: from });
    const log = terminalLog(terminal);
    const open = (config: Config) => openLocal(config, log);
    const { gate, close } = await (mounted === undefined ? open(all) : withStore(all, mounted, open));
    const { createApp } = await import('../http/app.ts');
    const principal: Principal = {
      id: 'move',
      app: `omp-gateway ${command}`,
      users: null,
      grants: { ...ALL_GRANTS, admin: true },
    };
    const app = createApp({
      gate,
      log,
      max_request_bytes: MAX_REQUEST_BYTES,
      request_timeout_ms: TIMEOUT_MS,
      authenticator: { authenticate: async () => principal },
    });
    const fetch = async (url: string | URL | Request, init?: RequestInit) => app.request(String(url), init, {});
    const shown = `${name} (${gate.provider})`;
    return openStore(shown, { url: 'http://store', fetch, ...listeners(shown) }, close);
  };
  const listeners = (name: string) => ({
    onRetry: (trouble: string) => say(`${name} ${trouble}; the request is sent again`),
    onWarning: (message: string) => say(`${name}: ${message.replace(/^omp-gateway-client: /, '')}`),
  });
  const remote = (url: string, key: string | undefined, patience: AbortSignal | undefined) =>
    openStore(url, { url, key: key || undefined, patience, ...listeners(url) });
  return {
    async open(name: string, key: 'from' | 'to', patience?: AbortSignal): Promise<GatewayStore> {
      if (!isStoreName(name)) {
        throw new Mistake(`"${name}" is no store: expected config, config:FILE or the URL of a gateway`);
      }
      const own = key === 'from' ? OMP_FROM_KEY : OMP_TO_KEY;
      const store = name.startsWith('http') ? await remote(name, own ?? OMP_KEY, patience) : await local(name);
      opened.push(store);
      if (!values.versions) return store;
      if (store.capabilities.features.versions) return { ...store, versions: true };
      throw new Error(`${store.name} keeps no versions (features.versions is not true); leave out --versions`);
    },
    async close() {
      for (const store of opened) await store.close();
    },
  };
}

/** Limits of a store in this process, which only this command calls. */
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;
const TIMEOUT_MS = 600_000;
