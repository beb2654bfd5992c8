import { useMemo, useState } from 'preact/hooks';
import type { Memory } from '../../clients/typescript/src/index.ts';
import { type Run, wordDiff } from './word-diff.ts';

/** Characters of an equal text that are shown beside a change. */
const BESIDE = 150;
/** Characters of a text that may be higher than its box: it scrolls, so the keyboard must reach it. */
const LONG = 1_000;

interface DifferenceProps {
  /** Undefined: there was nothing, or nothing is left. */
  readonly before?: Memory | undefined;
  readonly after?: Memory | undefined;
}

/** What turns one version of a memory into another: its text word by word, and its fields. */
export function Difference({ before, after }: DifferenceProps) {
  const [isWhole, setWhole] = useState(false);
  const parts = useMemo(() => partsOf(before?.content, after?.content), [before?.content, after?.content]);
  const isCut = !isWhole && parts.some(({ kind, text }) => kind === 'same' && text !== shortened(text));
  const isHigh = parts.reduce((sum, { text }) => sum + (isCut ? shortened(text) : text).length, 0) > LONG;
  return (
    <>
      <div class="difference" dir="auto" tabIndex={isHigh ? 0 : undefined}>
        {parts.map(({ kind, text }, n) => {
          if (kind === 'removed') return <del key={n}>{text}</del>;
          return kind === 'added' ? <ins key={n}>{text}</ins> : <span key={n}>{isCut ? shortened(text) : text}</span>;
        })}
      </div>
      {isCut && (
        <button type="button" onClick={() => setWhole(true)}>
          Show the whole text
        </button>
      )}
      {before && after && <Fields before={before} after={after} />}
    </>
  );
}

function partsOf(before: string | undefined, after: string | undefined): readonly Run[] {
  if (before !== undefined && after !== undefined) return wordDiff(before, after);
  return before === undefined ? [{ kind: 'added', text: after ?? '' }] : [{ kind: 'removed', text: before }];
}

/** Cut between words, if there are spaces. */
function shortened(text: string): string {
  if (text.length <= 3 * BESIDE) return text;
  return `${text.slice(0, BESIDE).replace(/\s\S*$/, '')} … ${text.slice(-BESIDE).replace(/^\S*\s/, '')}`;
}

/** Fields that are no part of what is remembered, or are shown otherwise. */
const LEFT_OUT = ['id', 'user_id', 'content', 'created_at', 'updated_at', 'embedding_model', 'status', 'x-omp-origin'];

function Fields({ before, after }: { readonly before: Memory; readonly after: Memory }) {
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => !LEFT_OUT.includes(name))
    .map((name) => ({ name, old: shown(before[name as keyof Memory]), now: shown(after[name as keyof Memory]) }))
    .filter(({ old, now }) => old !== now);
  if (changed.length === 0) return null;
  return (
    <dl>
      {changed.map(({ name, old, now }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd dir="auto">
            {old && <del>{old}</del>} {now && <ins>{now}</ins>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Null, an empty list and an absent field are the same: nothing. */
function shown(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.map(shown).join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
