import { useEffect, useState } from 'preact/hooks';
import { useLoad } from './load.tsx';
import { useSession } from './session.ts';

const SUGGESTIONS = 20;

/** The user of the memories. Suggests those that begin with what is typed, where the backend can list users. */
export function UserPicker({ user, onPick }: { user: string; onPick: (user: string) => void }) {
  const { client, capabilities } = useSession();
  const [text, setText] = useState(user);
  useEffect(() => setText(user), [user]);
  const { data } = useLoad(capabilities.features.users ? text : undefined, (signal) =>
    client.users.list({ prefix: text || undefined, limit: SUGGESTIONS }, { signal }).page(),
  );
  const users = data?.items ?? [];
  const input = (event: Event) => {
    const { value } = event.currentTarget as HTMLInputElement;
    setText(value);
    // Somebody chose a suggestion.
    if (!('inputType' in event) && users.some(({ user_id }) => user_id === value)) onPick(value);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.trim() !== '') onPick(text.trim());
  };
  return (
    <form class="user" onSubmit={submit}>
      <label>
        User
        <input
          list="users"
          value={text}
          onInput={input}
          placeholder="id of a user"
          autocomplete="off"
          spellcheck={false}
        />
      </label>
      <datalist id="users">
        {users.map(({ user_id, count }) => (
          <option key={user_id} value={user_id}>
            {count} memories
          </option>
        ))}
      </datalist>
    </form>
  );
}
