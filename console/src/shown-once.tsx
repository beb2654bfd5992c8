import type { ComponentChildren } from 'preact';
import { Copyable } from './copyable.tsx';
import { focus } from './ui.tsx';

interface ShownOnceProps {
  readonly title: ComponentChildren;
  readonly secret: string;
  /** Names the secret for screen readers. */
  readonly what: string;
  readonly onDone: () => void;
  /** What keeps it and what it is for; follows "This is the only time it is shown". */
  readonly children: ComponentChildren;
}

/** The only place and time that a new key, or the secret of a webhook, is shown. */
export function ShownOnce({ title, secret, what, onDone, children }: ShownOnceProps) {
  return (
    <section class="panel" ref={focus} tabIndex={-1} aria-labelledby="shown-once">
      <h2 id="shown-once">{title}</h2>
      <p>
        <b>This is the only time it is shown</b>
        {children}
      </p>
      <Copyable text={secret} what={what} />
      <p>
        <button type="button" class="main" onClick={onDone}>
          I have it
        </button>
      </p>
    </section>
  );
}
