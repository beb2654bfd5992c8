import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Choice, Combo } from './combo.tsx';
import { counted } from './format.tsx';
import { go } from './route.ts';
import { useSession } from './session.ts';
import { useUsers } from './user-picker.tsx';

const KEYS = [
  ['Ctrl K', 'go to a page, a user or a search'],
  ['/', 'go to the search field'],
  ['↑ ↓ Home End', 'move in a list'],
  ['Enter', 'open the memory'],
  ['e', 'edit it'],
  ['x', 'select it'],
  ['Delete', 'delete it'],
  ['Esc', 'close a menu, a form or a question'],
  ['?', 'show these keys'],
] as const;

type Shown = 'palette' | 'keys' | undefined;

interface DialogsProps {
  /** Pages of the console. */
  readonly pages: readonly Pick<Choice, 'text' | 'icon' | 'pick'>[];
  readonly user: string | undefined;
  readonly shown: Shown;
  readonly onShow: (shown: Shown) => void;
}

/** What Ctrl-K and `?` open, from everywhere; `/` goes to the search field of the page. */
export function Dialogs({ shown, onShow, ...props }: DialogsProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  // At once: a key before the listener is there would do nothing.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { target, key } = event;
      if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === 'k') {
        event.preventDefault();
        onShow('palette');
      }
      const typing = target instanceof Element && target.closest('input, textarea, select, dialog') !== null;
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const field = document.querySelector<HTMLInputElement>('input[type=search]');
      if (key === '?') onShow('keys');
      if (key !== '/' || !field) return;
      event.preventDefault();
      field.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  // At once: what is typed next belongs to the field.
  useLayoutEffect(() => {
    if (shown && !dialog.current?.open) dialog.current?.showModal();
    if (!shown) dialog.current?.close();
  }, [shown]);
  const close = () => onShow(undefined);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a dialog closes by the key Escape
    <dialog
      ref={dialog}
      class={shown}
      onClose={close}
      // The dialog itself is what a press beside its content reaches.
      onClick={(event) => event.target === dialog.current && close()}
      aria-label={shown === 'keys' ? 'Keys' : 'Go to'}
    >
      {shown === 'palette' && <Palette {...props} close={close} />}
      {shown === 'keys' && (
        <>
          <h2>Keys</h2>
          <dl>
            {KEYS.map(([keys, what]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
          <div class="actions">
            <button type="button" onClick={close}>
              Close
            </button>
          </div>
        </>
      )}
    </dialog>
  );
}

function Palette({ pages, user, close }: Pick<DialogsProps, 'pages' | 'user'> & { close: () => void }) {
  const [text, setText] = useState('');
  const typed = text.trim();
  const [entered, setEntered] = useState<string>();
  const { features } = useSession().capabilities;
  const { data, error } = useUsers(typed);
  const found = pages.filter(({ text: page }) => page.toLowerCase().includes(typed.toLowerCase()));
  const choices: Choice[] = [
    ...found,
    ...(data?.items ?? []).slice(0, 8).map(({ user_id, count: size }) => ({
      text: user_id,
      icon: 'users' as const,
      note: counted(size, 'memory', 'memories'),
      pick: () => go('memories', { user: user_id }),
    })),
    ...(typed && user
      ? [
          {
            text: `Search the memories of ${user} for “${typed}”`,
            icon: 'find' as const,
            pick: () => go('memories', { user, q: typed }),
          },
        ]
      : []),
  ];
  // Before the users are there, the first choice may be the search for the id of one.
  const isReady = found.length > 0 || !features.users || data !== undefined || error !== undefined;
  const pick = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    choice.pick();
  };
  useEffect(() => {
    if (entered === typed && isReady) pick(choices[0]);
  }, [entered, isReady]);
  return (
    <Combo
      isOpen
      label="Go to"
      placeholder="A page, a user, or words to search"
      text={text}
      onText={(now) => {
        setText(now);
        setEntered(undefined);
      }}
      onEnter={async () => {
        setEntered(typed);
        return true;
      }}
      none="Nothing has this name."
      choices={choices.map((choice) => ({ ...choice, pick: () => pick(choice) }))}
    />
  );
}
