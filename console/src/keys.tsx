import { useRef, useState } from 'preact/hooks';
import { type CreatedKey, type Key, ScopeDeniedError } from '../../clients/typescript/src/index.ts';
import { Copyable } from './copyable.tsx';
import { EmbeddingCost } from './embedding-usage.tsx';
import { Time } from './format.tsx';
import { KeyForm } from './key-form.tsx';
import { Failure, Reading, useLoad } from './load.tsx';
import { storedKey, useSession } from './session.ts';
import { ShownOnce } from './shown-once.tsx';
import { type Column, Empty, NewButton, Table, Title } from './ui.tsx';

const PAGE = 50;

/** The API keys of the gateway, for a caller with `admin:*`. */
export function Keys() {
  const { client, capabilities } = useSession();
  const [keys, setKeys] = useState<readonly Key[]>([]);
  const [cursor, setCursor] = useState<string>();
  const [made, setMade] = useState<CreatedKey>();
  const [adding, setAdding] = useState(false);
  const [revoked, setRevoked] = useState<Key>();
  const supported = capabilities.features.keys === true;
  const { data, error, reload } = useLoad(supported ? (cursor ?? '') : undefined, async (signal) => {
    const page = await client.keys.list({ limit: PAGE, cursor }, { signal }).page();
    setKeys((before) => [...before, ...page.items]);
    return page;
  });
  if (!supported)
    return (
      <>
        <NotStored />
        <EmbeddingCost />
      </>
    );
  if (error instanceof ScopeDeniedError) return <NotAdmin title="Keys" />;
  const add = ({ key, ...stored }: CreatedKey) => {
    setMade({ key, ...stored });
    setAdding(false);
    setRevoked(undefined);
    setKeys((before) => [stored, ...before]);
  };
  const replace = (key: Key) => {
    setRevoked(key);
    setKeys((before) => before.map((one) => (one.id === key.id ? key : one)));
  };
  return (
    <>
      <Title text="Keys" about="What applications and people use to reach their part of the memories.">
        {keys.length > 0 && !made && <NewButton text="New key" isOpen={adding} onClick={() => setAdding(!adding)} />}
      </Title>
      {error !== undefined && <Failure error={error} retry={reload} />}
      {made ? (
        <Made made={made} onDone={() => setMade(undefined)} />
      ) : (
        (adding || (data && keys.length === 0)) && <KeyForm onCreated={add} />
      )}
      <p role="status">{revoked && `${revoked.name} is revoked. Gateways reject it within five seconds.`}</p>
      {data && keys.length === 0 && (
        <Empty icon="keys" title="No key is stored">
          <p>Create one above. Keys of the configuration are not listed.</p>
        </Empty>
      )}
      {keys.length > 0 && <KeyTable keys={keys} onRevoked={replace} />}
      {!data && error === undefined && <Reading />}
      {data?.next_cursor && (
        <button type="button" onClick={() => setCursor(data.next_cursor ?? undefined)}>
          Older
        </button>
      )}
      <EmbeddingCost />
    </>
  );
}

const NotStored = () => (
  <Empty icon="keys" title="This backend stores no keys" isPage>
    <p>They are part of the gateway's configuration. This prints the lines for it:</p>
    <Copyable text="omp-gateway keys create NAME --grant 'read:*' --grant 'write:*' --print" what="the command" />
  </Empty>
);

/** Of the pages that need the grant. */
export const NotAdmin = ({ title }: { title: string }) => (
  <Empty icon="keys" title={title} isPage>
    <p>
      {storedKey() === undefined
        ? 'This page needs a key that has the grant admin:*. An operator makes one where the gateway runs:'
        : 'The key of this tab lacks the grant admin:*. An operator makes one that has it where the gateway runs:'}
    </p>
    <Copyable text="omp-gateway keys create admin --grant 'admin:*' --expires 90d" what="the command" />
    <p>
      {storedKey() === undefined
        ? 'If it is the first key, the gateway stops answering callers without one, and asks for the key here.'
        : 'Then choose “Forget key” in the navigation, and give the new one.'}
    </p>
  </Empty>
);

const Made = ({ made: { name, key }, onDone }: { made: CreatedKey; onDone: () => void }) => (
  <ShownOnce title={`The key ${name}`} secret={key} what="the key" onDone={onDone}>
    : the gateway keeps its hash. Clients send it as <code>Authorization: Bearer</code> and the key.
  </ShownOnce>
);

const stateOf = ({ revoked_at, expires_at }: Key): 'revoked' | 'expired' | 'active' => {
  if (revoked_at) return 'revoked';
  return expires_at && expires_at <= new Date().toISOString() ? 'expired' : 'active';
};

function KeyTable({ keys, onRevoked }: { keys: readonly Key[]; onRevoked: (key: Key) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [asked, setAsked] = useState<Key>();
  const own = storedKey()?.split('_')[1];
  const table = useRef<HTMLElement>(null);
  const revoked = (key: Key) => {
    onRevoked(key);
    // Its button is no more.
    table.current?.focus();
  };
  const ask = (key: Key) => {
    setAsked(key);
    dialog.current?.showModal();
  };
  const columns: readonly Column<Key>[] = [
    {
      name: 'Name',
      cell: ({ name, id }) => (
        <>
          <span dir="auto">{name}</span> <small>{id}</small>
        </>
      ),
      by: ({ name }) => name,
    },
    {
      name: 'State',
      cell: (key) => (
        <>
          <span class={`mark ${stateOf(key) === 'active' ? 'good' : 'old'}`}>{stateOf(key)}</span>{' '}
          {key.untrusted && <span class="mark bad">untrusted</span>}
        </>
      ),
      by: stateOf,
    },
    { name: 'Grants', cell: ({ grants }) => grants.map((grant) => <code key={grant}>{grant}</code>) },
    { name: 'Users', cell: ({ users }) => <span dir="auto">{users?.join(', ') ?? 'all'}</span> },
    { name: 'Created', cell: ({ created_at }) => <Time of={created_at} />, by: ({ created_at }) => created_at },
    {
      name: 'Expires',
      cell: ({ expires_at }) => (expires_at ? <Time of={expires_at} /> : 'never'),
      by: ({ expires_at }) => expires_at,
    },
    {
      name: 'Last used',
      cell: ({ last_used_at }) => (last_used_at ? <Time of={last_used_at} /> : 'never'),
      by: ({ last_used_at }) => last_used_at,
    },
    {
      name: 'Change',
      cell: (key) => {
        if (key.revoked_at) return <Time of={key.revoked_at} />;
        if (key.id === own) return 'in use here';
        return (
          <button type="button" class="danger" onClick={() => ask(key)} aria-label={`Revoke ${key.name}`}>
            Revoke
          </button>
        );
      },
    },
  ];
  return (
    <>
      <Table label="Stored keys" rows={keys} columns={columns} focus={table} />
      <dialog ref={dialog} aria-labelledby="revoke">
        {asked && <Revoke key={asked.id} asked={asked} onRevoked={revoked} close={() => dialog.current?.close()} />}
      </dialog>
    </>
  );
}

interface RevokeProps {
  readonly asked: Key;
  readonly onRevoked: (key: Key) => void;
  readonly close: () => void;
}

function Revoke({ asked, onRevoked, close }: RevokeProps) {
  const { client } = useSession();
  const [error, setError] = useState<unknown>();
  const revoke = async (event: Event) => {
    event.preventDefault();
    try {
      const key = await client.keys.revoke(asked.id);
      close();
      onRevoked(key);
    } catch (cause) {
      setError(cause);
    }
  };
  return (
    <form onSubmit={revoke}>
      <h2 id="revoke">Revoke {asked.name}?</h2>
      <ul>
        <li>Within five seconds no gateway accepts it.</li>
        <li>There is no way back, and its name stays taken.</li>
      </ul>
      {error !== undefined && <Failure error={error} />}
      <div class="actions">
        <button type="submit" class="danger">
          Revoke
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </form>
  );
}
