import { type ParseArgsConfig, parseArgs } from 'node:util';
import { backgroundCall, type Delivery } from '#contract';
import type { Commands } from '../../cli/command.ts';
import { COMMON_OPTIONS, COMMON_USAGE, configFlags, configOf, type Flags } from '../../cli/options.ts';
import { Mistake, printable, runCommand, type Terminal, terminalLog } from '../../cli/terminal.ts';
import { providerOptions } from '../../config/config-options.ts';
import { providerModule } from '../../registry.ts';
import { parse } from '../../verbs/fields.ts';
import { createDeliveryTools } from './delivery.ts';
import type { Webhook, Webhooks } from './interface.ts';
import { createWebhook } from './verbs.ts';
import { createWebhooks, deliveryOptions } from './webhooks.ts';

/** What `omp-gateway webhooks --help` prints: at most 80 columns wide, ends with a newline. */
const WEBHOOKS_USAGE = `Usage: omp-gateway webhooks create URL [options]
       omp-gateway webhooks list [--json] [options]
       omp-gateway webhooks test|rotate|delete ID [options]
       omp-gateway webhooks resume ID [--from-now] [options]

Webhooks: every change of a memory is sent to a URL, signed as Standard Webhooks
1.0 says. They are kept in Postgres, their secrets encrypted with
OMP_WEBHOOK_SECRET; the gateways deliver. create and rotate print the secret,
this time only. See docs/webhooks.md.

  test      Sends one event from here, and says how that ended
  rotate    Makes a new secret; the old one signs too for 24 hours
  resume    Delivers again after the deliveries have stopped

Options of create:
  --user USER         Only changes of this user; may be given several times
  --scope GLOB        Only changes in scopes that match
  --action ACTION     Only add, update, delete, erase or import; may be given
                      several times

Options of resume:
  --from-now          Leave out what was not delivered

Options of all:
${COMMON_USAGE}
`;

const OPTIONS = {
  create: {
    ...COMMON_OPTIONS,
    user: { type: 'string', multiple: true },
    scope: { type: 'string' },
    action: { type: 'string', multiple: true },
  },
  list: { ...COMMON_OPTIONS, json: { type: 'boolean' } },
  test: COMMON_OPTIONS,
  rotate: COMMON_OPTIONS,
  delete: COMMON_OPTIONS,
  resume: { ...COMMON_OPTIONS, 'from-now': { type: 'boolean' } },
} as const satisfies Record<string, ParseArgsConfig['options']>;
type Command = keyof typeof OPTIONS;

interface Asked {
  readonly command: Command;
  /** The URL, or the id of a webhook; undefined for `list`. */
  readonly subject: string | undefined;
  readonly values: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;
  readonly flags: Flags;
}

/** Parses the arguments that follow `webhooks`. Throws `Mistake`, or as `parseArgs` does. */
function parseWebhooksArguments([command, ...args]: readonly string[]): Asked | 'help' {
  if (command === '--help' || command === '-h') return 'help';
  if (command === undefined || !Object.hasOwn(OPTIONS, command)) {
    throw new Mistake(command === undefined ? 'webhooks needs a command' : `Unknown command 'webhooks ${command}'`);
  }
  const options: ParseArgsConfig['options'] = OPTIONS[command as Command];
  const { values, positionals } = parseArgs({ args, options, allowPositionals: command !== 'list' });
  if (values.help) return 'help';
  const [subject, extra] = positionals;
  if (command !== 'list' && (subject === undefined || extra !== undefined)) {
    throw new Mistake(`webhooks ${command} needs one ${command === 'create' ? 'URL' : 'id'}`);
  }
  return { command: command as Command, subject, values, flags: configFlags(values) };
}

/**
 * `omp-gateway webhooks`: results go to standard output, everything else to standard error. Returns the exit status: 0; 1: it
 * failed; 2: wrong arguments.
 */
export const runWebhooks = (argv: readonly string[], terminal: Terminal): Promise<number> =>
  runCommand('webhooks', WEBHOOKS_USAGE, terminal, async () => {
    const asked = parseWebhooksArguments(argv);
    if (asked === 'help') return asked;
    await withWebhooks(asked, terminal);
    return 0;
  });

const NO_SECRET =
  'OMP_WEBHOOK_SECRET is not set: it encrypts the secrets of webhooks; make it once with "openssl rand -base64 32", for the gateways too';

async function withWebhooks(asked: Asked, terminal: Terminal): Promise<void> {
  const config = configOf(asked.flags, terminal);
  const options = deliveryOptions(config);
  if (!options) throw new Error(NO_SECRET);
  const { provider, data_dir } = config;
  const { openWebhooks } = await providerModule(provider);
  const store = await openWebhooks?.(providerOptions(config), { data_dir, log: terminalLog(terminal) });
  if (!store) throw new Error(elsewhere(provider));
  const webhooks = createWebhooks({ ...store, ...createDeliveryTools(options) });
  await run(asked, webhooks, terminal).finally(store.close);
}

const elsewhere = (provider: string) =>
  `this command cannot manage webhooks of the provider ${provider}; use POST /webhooks of a gateway whose features.webhooks is true`;

/** Throws if there was no such webhook. */
function known<Result>(result: Result | undefined | false): Result {
  if (!result) throw new Error('no webhook has this id');
  return result;
}

const SHOWN_ONCE = 'This is the only time the secret is shown. Receivers check the signatures with it.\n';

async function run({ command, subject = '', values }: Asked, webhooks: Webhooks, { stdout, stderr }: Terminal) {
  const call = backgroundCall('webhooks', new AbortController().signal);
  if (command === 'create') {
    const { user: users, scope, action: actions } = values;
    const input = parse(createWebhook.input, { url: subject, users, scope, actions });
    const filter = { users: input.users ?? null, scope: input.scope ?? null, actions: input.actions ?? null };
    const { webhook, secret } = await webhooks.create({ url: input.url, ...filter }, call);
    stdout.write(`${webhook.id}\n${secret}\n`);
    stderr.write(SHOWN_ONCE);
  } else if (command === 'list') {
    const all = await webhooks.list(call);
    stdout.write(values.json ? `${JSON.stringify(all, null, 2)}\n` : all.map(described).join(''));
  } else if (command === 'test') {
    const delivery = known(await webhooks.test(subject, call));
    stdout.write(`${attempt(delivery)}\n`);
    if (delivery.outcome !== 'delivered') throw new Error('the event was not delivered');
  } else if (command === 'rotate') {
    stdout.write(`${known(await webhooks.rotate(subject, call)).secret}\n`);
    stderr.write(SHOWN_ONCE);
  } else if (command === 'resume') {
    const from = values['from-now'] ? 'now' : 'cursor';
    stdout.write(`${known(await webhooks.resume({ id: subject, from }, call)).id} is active\n`);
  } else {
    known(await webhooks.delete(subject, call));
    stdout.write(`${subject} is deleted\n`);
  }
}

const attempt = ({ at, type, outcome, status, milliseconds }: Delivery): string =>
  `${at} ${type}: ${outcome}${status === null ? '' : ` (${status})`}, ${milliseconds} ms`;

function described({ id, url, state, users, scope, actions, failing_since, undelivered, deliveries }: Webhook): string {
  const stopped = state === 'active' ? [] : [`${undelivered} changes were not delivered`];
  const failing = failing_since === null ? [] : [`fails since ${failing_since}`];
  const lines = [
    `users ${users?.join(' ') ?? 'all'}, scopes ${scope ?? 'all'}, actions ${actions?.join(' ') ?? 'all'}`,
    ...stopped,
    ...failing,
    ...deliveries.slice(0, 1).map(attempt),
  ];
  return `${id}  ${state}  ${printable(url)}\n${lines.map((line) => `  ${printable(line)}\n`).join('')}`;
}

export const commands: Commands = { webhooks: runWebhooks };
