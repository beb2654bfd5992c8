import { render } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import icon from './icon.svg';
import { createClient, forgetKey, storedKey, storeKey } from './session.ts';
import { Console } from './shell.tsx';
import { focus } from './ui.tsx';

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

function KeyForm({ wrong, onKey }: { wrong: boolean; onKey: (key: string) => void }) {
  useEffect(() => {
    document.title = 'omp-gateway';
  }, []);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const key = new FormData(event.currentTarget as HTMLFormElement).get('key');
    if (typeof key === 'string' && key.trim() !== '') onKey(key.trim());
  };
  return (
    <main class="gate">
      <p class="brand">
        <img src={icon} alt="" />
        omp-gateway
      </p>
      <h1>This gateway needs a key</h1>
      <form onSubmit={submit}>
        <label>
          Key or token
          <input name="key" type="password" autocomplete="off" required ref={focus} />
        </label>
        {wrong && (
          <p class="failure" role="alert">
            The gateway does not accept this key. It may be wrong, revoked or expired.
          </p>
        )}
        <button type="submit" class="main">
          Open
        </button>
      </form>
      <p class="soft">
        The key stays in this tab and is forgotten when you close it. The console can do what the key may do. An
        operator creates a key with:
      </p>
      <pre>omp-gateway keys create my-console --user ana --grant '*:*'</pre>
    </main>
  );
}

const root = document.getElementById('app');
if (root) render(<App />, root);
