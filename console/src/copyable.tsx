import { useRef, useState } from 'preact/hooks';

const SAYS = { not: '', copied: 'Copied.', selected: 'Selected: press Ctrl+C.' } as const;

/** A text to take elsewhere. Pages without TLS may not copy: there the button selects it. `what` names it for screen readers. */
export function Copyable({ text, what }: { text: string; what: string }) {
  const shown = useRef<HTMLPreElement>(null);
  const [done, setDone] = useState<keyof typeof SAYS>('not');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone('copied');
    } catch {
      if (shown.current) getSelection()?.selectAllChildren(shown.current);
      setDone('selected');
    }
  };
  return (
    <>
      <pre ref={shown}>{text}</pre>
      <button type="button" onClick={copy}>
        Copy <span class="hidden">{what}</span>
      </button>{' '}
      <span role="status">{SAYS[done]}</span>
    </>
  );
}
