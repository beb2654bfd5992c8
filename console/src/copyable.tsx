import { useRef, useState } from 'preact/hooks';
import { Icon } from './icon.tsx';

const SAYS = { not: '', copied: 'Copied.', selected: 'Selected: press Ctrl+C.' } as const;

/** Characters of a text that may be higher than its box: it scrolls, so the keyboard must reach it. */
const LONG = 800;

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
    <div class="copyable">
      <pre ref={shown} tabIndex={text.length > LONG ? 0 : undefined}>
        {text}
      </pre>
      <button type="button" onClick={copy}>
        <Icon name={done === 'copied' ? 'done' : 'copy'} />
        Copy <span class="hidden">{what}</span>
      </button>
      <small role="status">{SAYS[done]}</small>
    </div>
  );
}
