import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Icon, type IconName } from './icon.tsx';

export interface Choice {
  readonly text: string;
  readonly note?: string | undefined;
  readonly icon?: IconName;
  /** Enter takes it only after an arrow key has led there. */
  readonly isRisky?: boolean;
  readonly pick: () => void;
}

interface ComboProps {
  readonly label: string;
  readonly placeholder: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly choices: readonly Choice[];
  /** Shown if there is no choice. */
  readonly none?: string | undefined;
  /** The list is always open, and the field has the focus. */
  readonly isOpen?: boolean;
  /** Instead of the first choice: Enter without an arrow key before. The list closes if it resolves to true. */
  readonly onEnter?: () => Promise<boolean>;
}

/** A field with choices below, for the keyboard and screen readers as the pattern "combobox" of WAI-ARIA says. */
export function Combo({ label, placeholder, text, onText, choices, none, isOpen = false, onEnter }: ComboProps) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const [opened, setOpened] = useState(false);
  const [active, setActive] = useState<number>();
  useEffect(() => setActive(undefined), [text]);
  const open = isOpen || opened;
  const first = choices[0] && !choices[0].isRisky ? 0 : undefined;
  const shown = active ?? first;
  useEffect(() => {
    if (shown !== undefined) document.getElementById(`${id}-${shown}`)?.scrollIntoView({ block: 'nearest' });
  }, [shown]);
  const pick = (choice: Choice | undefined) => {
    setOpened(false);
    setActive(undefined);
    choice?.pick();
  };
  const move = (by: number) => {
    setOpened(true);
    if (choices.length > 0)
      setActive(((active ?? (by > 0 ? (first ?? -1) : 0)) + by + choices.length) % choices.length);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const actions: Record<string, (() => void) | undefined> = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Enter() {
        if (active !== undefined) pick(choices[active]);
        else if (onEnter) void onEnter().then((taken) => taken && setOpened(false));
        else if (first !== undefined) pick(choices[first]);
      },
      Escape: opened
        ? () => {
            setOpened(false);
            event.stopPropagation();
          }
        : undefined,
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  return (
    <div class="combo">
      <Icon name={isOpen ? 'find' : 'users'} />
      <input
        ref={field}
        role="combobox"
        aria-label={label}
        aria-expanded={open}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={open && shown !== undefined ? `${id}-${shown}` : undefined}
        value={text}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        onFocus={(event) => event.currentTarget.select()}
        onClick={() => setOpened(true)}
        onBlur={() => setOpened(false)}
        onInput={(event) => {
          setOpened(true);
          onText(event.currentTarget.value);
        }}
        onKeyDown={onKey}
      />
      {open && (
        <div id={id} class="options" role="listbox" aria-label="Suggestions">
          {choices.map((choice, n) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
            <div
              key={choice.text}
              id={`${id}-${n}`}
              role="option"
              tabIndex={-1}
              aria-selected={n === shown}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => pick(choice)}
            >
              {choice.icon && <Icon name={choice.icon} />}
              <span dir="auto">{choice.text}</span>
              {choice.note && <small>{choice.note}</small>}
            </div>
          ))}
          {choices.length === 0 && none && (
            <div class="none" role="option" tabIndex={-1} aria-selected={false} aria-disabled="true">
              {none}
            </div>
          )}
        </div>
      )}
    </div>
  );
}
