import { useEffect, useState } from 'preact/hooks';
import { Combo } from './combo.tsx';
import { counted } from './format.tsx';
import { useLoad } from './load.tsx';
import { useSession } from './session.ts';

const SUGGESTIONS = 20;

/** Users whose id begins with the text, where the backend can list users and the text is not undefined. */
export function useUsers(text: string | undefined) {
  const { client, capabilities } = useSession();
  return useLoad(capabilities.features.users ? text : undefined, (signal) =>
    client.users.list({ prefix: text || undefined, limit: SUGGESTIONS }, { signal }).page(),
  );
}

/**
 * The user of the memories. Enter opens one that exists: the first that begins with what is typed. A new one is opened by a choice
 * of its own. Where the backend cannot list users, Enter opens what is typed.
 */
export function UserPicker({ user, onPick }: { user: string; onPick: (user: string) => void }) {
  const { client, capabilities } = useSession();
  const [text, setText] = useState(user);
  useEffect(() => setText(user), [user]);
  const typed = text.trim();
  // Without a change of the text, all are suggested.
  const { data } = useUsers(text === user ? '' : typed);
  const users = data?.items ?? [];
  const pick = (picked: string) => {
    setText(picked);
    onPick(picked);
    return true;
  };
  const enter = async () => {
    if (typed === '') return false;
    if (!capabilities.features.users) return pick(typed);
    // What is suggested may be of the text before.
    const page = await client.users
      .list({ prefix: typed, limit: SUGGESTIONS })
      .page()
      .catch(() => undefined);
    // The page says why it cannot be read.
    if (!page) return pick(typed);
    const found = page.items.find(({ user_id }) => user_id === typed) ?? page.items[0];
    return found !== undefined && pick(found.user_id);
  };
  const isNew = data !== undefined && typed !== '' && !users.some(({ user_id }) => user_id === typed);
  return (
    <div class="user">
      <Combo
        label="User"
        placeholder="Whose memories?"
        text={text}
        onText={setText}
        onEnter={enter}
        choices={[
          ...users.map(({ user_id, count: size }) => ({
            text: user_id,
            note: counted(size, 'memory', 'memories'),
            pick: () => pick(user_id),
          })),
          ...(isNew
            ? [{ text: `New user “${typed}”`, isRisky: true, icon: 'add' as const, pick: () => pick(typed) }]
            : []),
        ]}
        none={capabilities.features.users ? undefined : 'This backend cannot list its users. Enter opens the id typed.'}
      />
    </div>
  );
}
