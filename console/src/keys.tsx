import { useRef, useState } from 'preact/hooks';
import { type CreatedKey, type Key, ScopeDeniedError } from '../../clients/typescript/src/index.ts';
import { Copyable } from './copyable.tsx';
import { Time } from './format.tsx';
import { KeyForm } from './key-form.tsx';
import { Failure, useLoad } from './load.tsx';
import { storedKey, useSession } from './session.ts';
import { ShownOnce } from './shown-once.tsx';

const PAGE = 50;

/** The API keys of the gateway, for a caller with `admin:*`. */
export function Keys() {
  const { client, capabilities } = useSession();
  const [keys, setKeys] = useState<readonly Key[]>([]);
  const [cursor, setCursor] = useState<string>();
  const [made, setMade] = useState<CreatedKey>();
  const [revoked, setRevoked] = useState<Key>();
  const supported = capabilities.features.keys === true;
  const { data, error, reload } = useLoad(supported ? (cursor ?? '') : undefined, async (signal) => {
    const page = await client.keys.list({ limit: PAGE, cursor }, { signal }).page();
    setKeys((before) => [...before, ...page.items]);
    return page;
  });
  if (!supported) return <NotStored />;
  if (error instanceof ScopeDeniedError) return <NotAdmin title="Keys" />;
  const add = ({ key, ...stored }: CreatedKey) => {
    setMade({ key, ...stored });
    setRevoked(undefined);
    setKeys((before) => [stored, ...before]);
  };
  const replace = (key: Key) => {
    setRevoked(key);
    setKeys((before) => before.map((one) => (one.id === key.id ? key : one)));
  };
  return (
    <>
      <h1>Keys</h1>
      {error !== undefined && <Failure error={error} retry={reload} />}
      {made ? <Made made={made} onDone={() => setMade(undefined)} /> : data && <KeyForm onCreated={add} />}
      <p role="status">{revoked && `${revoked.name} is revoked. Gateways reject it within five seconds.`}</p>
      {data && keys.length === 0 && <p class="empty">No key is stored. Keys of the configuration are not listed.</p>}
      {keys.length > 0 && <KeyTable keys={keys} onRevoked={replace} />}
      {data?.next_cursor && (
        <button type="button" onClick={() => setCursor(data.next_cursor ?? undefined)}>
          Older
        </button>
      )}
    </>
  );
}

const NotStored = () => (
  <div class="empty">
    <h1>Keys</h1>
    <p>This backend stores no keys: they are part of the gateway's configuration. This prints the lines for it:</p>
    <Copyable text="omp-gateway keys create NAME --grant 'read:*' --grant 'write:*' --print" what="the command" />
  </div>
);

/** Of the pages that need the grant. */
export const NotAdmin = ({ title }: { title: string }) => (
  <div class="empty">
    <h1>{title}</h1>
    <p>
      {storedKey() === undefined
        ? 'This page needs a key that has the grant admin:*. An operator makes one where the gateway runs:'
        : 'The key of this tab lacks the grant admin:*. An operator makes one that has it where the gateway runs:'}
    </p>
    <Copyable text="omp-gateway keys create admin --grant 'admin:*' --expires 90d" what="the command" />
    <p>
      {storedKey() === undefined
        ? 'If it is the first key, the gateway stops answering callers without one, and asks for the key here.'
        : 'Then choose “Forget key” above, and give the new one.'}
    </p>
  </div>
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
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, which the keyboard must be able to do */}
      <section class="wide" ref={table} tabIndex={0} aria-label="Stored keys">
        <table>
          <thead>
            <tr>
              {['Name', 'State', 'Grants', 'Users', 'Created', 'Expires', 'Last used', 'Change'].map((head) => (
                <th key={head}>{head}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {keys.map((key) => (
              <tr key={key.id}>
                <th scope="row">
                  <span dir="auto">{key.name}</span> <small>{key.id}</small>
                </th>
                <td>
                  <span class={`mark ${stateOf(key) === 'active' ? '' : 'old'}`}>{stateOf(key)}</span>{' '}
                  {key.untrusted && <span class="mark bad">untrusted</span>}
                </td>
                <td>
                  {key.grants.map((grant) => (
                    <code key={grant}>{grant}</code>
                  ))}
                </td>
                <td dir="auto">{key.users?.join(', ') ?? 'all'}</td>
                <td>
                  <Time of={key.created_at} />
                </td>
                <td>{key.expires_at ? <Time of={key.expires_at} /> : 'never'}</td>
                <td>{key.last_used_at ? <Time of={key.last_used_at} /> : 'never'}</td>
                <td>
                  {key.revoked_at ? (
                    <Time of={key.revoked_at} />
                  ) : key.id === own ? (
                    'in use here'
                  ) : (
                    <button type="button" class="danger" onClick={() => ask(key)} aria-label={`Revoke ${key.name}`}>
                      Revoke
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
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
