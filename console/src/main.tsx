import { render } from 'preact';
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import type { MemoryClient } from '../../clients/typescript/src/index.ts';
import { Audit } from './audit.tsx';
import { Deletions } from './deletion.tsx';
import { Health } from './health.tsx';
import { Keys } from './keys.tsx';
import { Failure, useLoad } from './load.tsx';
import { MapPage } from './map.tsx';
import { Memories } from './memories.tsx';
import { OneMemory } from './one-memory.tsx';
import { Rollback } from './rollback.tsx';
import { go, href, useRoute } from './route.ts';
import { SearchLab } from './search-lab.tsx';
import { createClient, forgetKey, SessionContext, storedKey, storeKey } from './session.ts';
import { UserPicker } from './user-picker.tsx';
import { Users } from './users.tsx';
import { Webhooks } from './webhooks.tsx';

const PAGES = [
  { page: 'memories', title: 'Memories', Page: Memories },
  { page: 'search', title: 'Search', Page: SearchLab },
  { page: 'map', title: 'Map', Page: MapPage },
  { page: 'users', title: 'Users', Page: Users },
  { page: 'audit', title: 'Audit', Page: Audit },
  { page: 'rollback', title: 'Rollback', Page: Rollback },
  { page: 'keys', title: 'Keys', Page: Keys },
  { page: 'webhooks', title: 'Webhooks', Page: Webhooks },
  { page: 'health', title: 'Health', Page: Health },
] as const;

function App() {
  const [key, setKey] = useState(storedKey);
  const [rejected, setRejected] = useState(false);
  const client = useMemo(() => createClient(() => setRejected(true)), [key]);
  const lock = () => {
    forgetKey();
    setKey(undefined);
    setRejected(true);
  };
  const unlock = (given: string) => {
    storeKey(given);
    setKey(given);
    setRejected(false);
  };
  if (rejected) return <KeyForm wrong={key !== undefined} onKey={unlock} />;
  return <Console client={client} onLock={key === undefined ? undefined : lock} />;
}

function Console({ client, onLock }: { client: MemoryClient; onLock: (() => void) | undefined }) {
  const { page, parameters } = useRoute();
  const { data: capabilities, error, reload } = useLoad('', (signal) => client.capabilities({ signal }));
  const session = useMemo(() => capabilities && { client, capabilities }, [client, capabilities]);
  const focusSearch = useCallback((event: KeyboardEvent) => {
    const { target } = event;
    const typing = target instanceof Element && target.closest('input, textarea, select, dialog') !== null;
    if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const field = document.querySelector<HTMLInputElement>('input[type=search]');
    if (!field) return;
    event.preventDefault();
    field.focus();
  }, []);
  useEffect(() => {
    addEventListener('keydown', focusSearch);
    return () => removeEventListener('keydown', focusSearch);
  }, [focusSearch]);
  const { user } = parameters;
  const known = PAGES.find((one) => one.page === page) ?? PAGES[0];
  const title = page === 'memory' ? 'Memory' : known.title;
  useEffect(() => {
    document.title = `${title}${user === undefined ? '' : ` of ${user}`}`;
  }, [title, user]);
  if (error !== undefined) return <Failure error={error} retry={reload} />;
  if (!session) return <p class="empty">Asking the gateway…</p>;
  return (
    <SessionContext.Provider value={session}>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the page
      </button>
      <header class="bar">
        <nav aria-label="Pages">
          {PAGES.filter(({ page: name }) => name !== 'rollback' || capabilities?.features.rollback).map((one) => (
            <a key={one.page} href={href(one.page, { user })} aria-current={one === known ? 'page' : undefined}>
              {one.title}
            </a>
          ))}
        </nav>
        <UserPicker user={user ?? ''} onPick={(picked) => go(known.page, { user: picked })} />
        {onLock && (
          <button type="button" onClick={onLock}>
            Forget key
          </button>
        )}
      </header>
      <Deletions>
        <main id="main" tabIndex={-1}>
          {page === 'memory' ? <OneMemory {...parameters} /> : <known.Page {...parameters} />}
        </main>
      </Deletions>
    </SessionContext.Provider>
  );
}

function KeyForm({ wrong, onKey }: { wrong: boolean; onKey: (key: string) => void }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const key = new FormData(event.currentTarget as HTMLFormElement).get('key');
    if (typeof key === 'string' && key.trim() !== '') onKey(key.trim());
  };
  return (
    <main class="gate">
      <h1>This gateway needs a key</h1>
      <form onSubmit={submit}>
        <label>
          Key or token
          <input name="key" type="password" autocomplete="off" required autofocus />
        </label>
        {wrong && (
          <p class="failure" role="alert">
            The gateway does not accept this key. It may be wrong, revoked or expired.
          </p>
        )}
        <button type="submit">Open</button>
      </form>
      <p>The key stays in this tab and is forgotten when you close it. The console can do what the key may do.</p>
      <p>An operator creates a key with:</p>
      <pre>omp-gateway keys create my-console --user ana --grant '*:*'</pre>
    </main>
  );
}

const root = document.getElementById('app');
if (root) render(<App />, root);
