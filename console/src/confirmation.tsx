import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { Failure } from './load.tsx';

interface ConfirmationProps {
  /** Of the title. */
  readonly id: string;
  /** On the button that asks. */
  readonly button: ComponentChildren;
  readonly title: ComponentChildren;
  /** What follows, and that there is no way back. */
  readonly children: ComponentChildren;
  /** On the button that confirms. */
  readonly action: string;
  readonly disabled?: boolean;
  /** If it fails, the dialog stays and shows why. */
  readonly onConfirmed: () => unknown;
}

/** A button for what has no way back, and the dialog that asks before it. */
export function Confirmation({ id, button, title, children, action, disabled, onConfirmed }: ConfirmationProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState<unknown>();
  const confirm = async (event: SubmitEvent) => {
    event.preventDefault();
    try {
      await onConfirmed();
      dialog.current?.close();
    } catch (cause) {
      setError(cause);
    }
  };
  return (
    <>
      <button type="button" class="danger" onClick={() => dialog.current?.showModal()}>
        {button}
      </button>
      <dialog ref={dialog} aria-labelledby={id}>
        <form onSubmit={confirm}>
          <h2 id={id}>{title}</h2>
          {children}
          {error !== undefined && <Failure error={error} />}
          <div class="actions">
            <button type="submit" class="danger" disabled={disabled}>
              {action}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}
