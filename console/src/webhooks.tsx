import { useState } from 'preact/hooks';
import {
  type ChangeAction,
  type NewWebhook,
  ScopeDeniedError,
  type Webhook,
  type WebhookWithSecret,
} from '../../clients/typescript/src/index.ts';
import { Confirmation } from './confirmation.tsx';
import { Copyable } from './copyable.tsx';
import { count, Time } from './format.tsx';
import { textIn, UsersField, usersIn } from './key-form.tsx';
import { NotAdmin } from './keys.tsx';
import { Failure, Reading, useLoad } from './load.tsx';
import { useSession } from './session.ts';
import { ShownOnce } from './shown-once.tsx';
import { Empty, NewButton, Table, Title } from './ui.tsx';

/** The webhooks of the gateway with their last deliveries, for a caller with `admin:*`. */
export function Webhooks() {
  const { client, capabilities } = useSession();
  const supported = capabilities.features.webhooks === true;
  const { data, error, reload } = useLoad(supported ? '' : undefined, (signal) => client.webhooks.list({ signal }));
  const [secret, setSecret] = useState<string>();
  const [adding, setAdding] = useState(false);
  const [told, setTold] = useState('');
  const [failure, setFailure] = useState<unknown>();
  if (!supported) return <NotSupported />;
  if (error instanceof ScopeDeniedError) return <NotAdmin title="Webhooks" />;
  /** Runs the work, says what it returns, and shows the webhooks as they are then. */
  const run = async (work: () => Promise<string>) => {
    setFailure(undefined);
    try {
      setTold(await work());
    } catch (cause) {
      setFailure(cause);
    }
    reload();
  };
  const made = ({ secret }: WebhookWithSecret) => {
    setSecret(secret);
    setAdding(false);
    setTold('');
    reload();
  };
  const isEmpty = data?.items.length === 0;
  return (
    <>
      <Title text="Webhooks" about="Each change of a memory, sent to an address of yours, signed and in order.">
        {data && !isEmpty && !secret && (
          <NewButton text="New webhook" isOpen={adding} onClick={() => setAdding(!adding)} />
        )}
      </Title>
      {error !== undefined && <Failure error={error} retry={reload} />}
      {failure !== undefined && <Failure error={failure} />}
      {secret ? (
        <Secret secret={secret} onDone={() => setSecret(undefined)} />
      ) : (
        (adding || isEmpty) && <Form onCreated={made} />
      )}
      <p role="status">{told}</p>
      {!data && error === undefined && <Reading />}
      {isEmpty && (
        <Empty icon="webhooks" title="There is no webhook">
          <p>Create one above. The next change is the first that is sent.</p>
        </Empty>
      )}
      {data?.items.map((webhook) => (
        <One key={webhook.id} webhook={webhook} run={run} onRotated={made} />
      ))}
      {data && (
        <button type="button" onClick={reload}>
          Refresh
        </button>
      )}
    </>
  );
}

const NotSupported = () => (
  <Empty icon="webhooks" title="This gateway sends no changes" isPage>
    <p>
      Webhooks need the gateway's own tables in Postgres, the audit log, and a secret that encrypts theirs, as{' '}
      <code>OMP_WEBHOOK_SECRET</code>:
    </p>
    <Copyable text="openssl rand -base64 32" what="the command" />
  </Empty>
);

const Secret = ({ secret, onDone }: { secret: string; onDone: () => void }) => (
  <ShownOnce title="The secret" secret={secret} what="the secret" onDone={onDone}>
    . The receiver checks the signatures with it.
  </ShownOnce>
);

const ACTIONS: readonly ChangeAction[] = ['add', 'update', 'delete', 'erase', 'import'];

function Form({ onCreated }: { onCreated: (webhook: WebhookWithSecret) => void }) {
  const { client } = useSession();
  const [error, setError] = useState<unknown>();
  const [saving, setSaving] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const actions = ACTIONS.filter((action) => given.has(action));
    const webhook: NewWebhook = {
      url: textIn(given, 'url').trim(),
      users: usersIn(given),
      scope: textIn(given, 'scope') || null,
      actions: actions.length < ACTIONS.length ? actions : null,
    };
    setSaving(true);
    setError(undefined);
    try {
      onCreated(await client.webhooks.create(webhook));
    } catch (cause) {
      setError(cause);
      setSaving(false);
    }
  };
  return (
    <form class="panel" onSubmit={submit} aria-labelledby="new-webhook">
      <h2 id="new-webhook">New webhook</h2>
      <div class="fields">
        <label>
          URL
          <input name="url" type="url" required maxLength={2048} autocomplete="off" placeholder="https://" />
        </label>
        <label>
          Scopes; empty: all
          <input name="scope" maxLength={512} spellcheck={false} placeholder="coding/*" />
        </label>
        <UsersField />
      </div>
      <fieldset class="fields">
        <legend>Changes by</legend>
        {ACTIONS.map((action) => (
          <label key={action} class="box">
            <input type="checkbox" name={action} defaultChecked />
            {action}
          </label>
        ))}
      </fieldset>
      {error !== undefined && <Failure error={error} />}
      <button type="submit" class="main" disabled={saving}>
        Create webhook
      </button>
    </form>
  );
}

interface OneProps {
  readonly webhook: Webhook;
  run(work: () => Promise<string>): Promise<void>;
  onRotated(webhook: WebhookWithSecret): void;
}

const STATES = {
  active: 'active',
  gone: 'stopped: the receiver answered 410',
  given_up: 'given up after a day',
  lost: 'stopped: the audit log no longer holds the next change',
} as const;

function One({ webhook, run, onRotated }: OneProps) {
  const { client } = useSession();
  const { id, url, users, scope, actions, state, failing_since, undelivered, deliveries } = webhook;
  const works = state === 'active' && failing_since === null;
  const test = () =>
    run(async () => {
      const { outcome, status } = await client.webhooks.test(id);
      return `Test: ${outcome}${status === null ? '' : ` (${status})`}.`;
    });
  const resume = () => run(() => client.webhooks.resume(id).then(() => 'The deliveries go on.'));
  const rotate = () =>
    run(async () => {
      onRotated(await client.webhooks.rotate(id));
      return 'The old secret signs too for 24 hours.';
    });
  const remove = () => void run(() => client.webhooks.delete(id).then(() => `${url} is deleted.`));
  return (
    <section class="panel" aria-labelledby={id}>
      <h2 id={id}>
        <span class="address">{url}</span> <span class={`mark ${works ? 'good' : 'bad'}`}>{STATES[state]}</span>
      </h2>
      <p>
        Users: <span dir="auto">{users?.join(', ') ?? 'all'}</span> · scopes: <code>{scope ?? 'all'}</code> · actions:{' '}
        {actions?.join(', ') ?? 'all'} · <small>{id}</small>
      </p>
      {failing_since && (
        <p>
          Deliveries fail since <Time of={failing_since} />.
        </p>
      )}
      {undelivered > 0 && <p>{count(undelivered)} changes were not delivered.</p>}
      <div class="actions">
        <button type="button" onClick={test}>
          Send a test
        </button>
        {!works && (
          <button type="button" onClick={resume}>
            Resume
          </button>
        )}
        <button type="button" onClick={rotate}>
          New secret
        </button>
        <Confirmation
          id={`delete-${id}`}
          button="Delete"
          title="Delete this webhook?"
          action="Delete"
          onConfirmed={remove}
        >
          <p class="address">{url}</p>
          <p>Nothing more is sent there, and there is no way back.</p>
        </Confirmation>
      </div>
      {deliveries.length > 0 && <Deliveries {...webhook} />}
    </section>
  );
}

type Delivery = Webhook['deliveries'][number];

const DELIVERIES = [
  { name: 'Time', cell: ({ at }: Delivery) => <Time of={at} />, by: ({ at }: Delivery) => at },
  { name: 'Event', cell: ({ type }: Delivery) => type, by: ({ type }: Delivery) => type },
  {
    name: 'Outcome',
    cell: ({ outcome }: Delivery) => <span class={`mark ${outcome === 'delivered' ? 'good' : 'bad'}`}>{outcome}</span>,
    by: ({ outcome }: Delivery) => outcome,
  },
  { name: 'Status', cell: ({ status }: Delivery) => status ?? '–', by: ({ status }: Delivery) => status },
  {
    name: 'Milliseconds',
    cell: ({ milliseconds }: Delivery) => count(milliseconds),
    by: ({ milliseconds }: Delivery) => milliseconds,
    isNumber: true,
  },
  { name: 'Id', cell: ({ id }: Delivery) => <code>{id}</code> },
];

const Deliveries = ({ url, deliveries }: Webhook) => (
  <Table label={`Last deliveries to ${url}`} rows={deliveries} columns={DELIVERIES} />
);
