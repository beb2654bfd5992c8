import type { ComponentChildren } from 'preact';
import type { Memory } from '../../clients/typescript/src/index.ts';
import { href } from './route.ts';
import { useSession } from './session.ts';

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const NUMBER = new Intl.NumberFormat();

/** A time in the reader's time zone; its tooltip has the exact time. */
export function Time({ of }: { of: string | null | undefined }) {
  if (!of) return null;
  return (
    <time dateTime={of} title={of}>
      {TIME.format(new Date(of))}
    </time>
  );
}

export const count = (value: number): string => NUMBER.format(value);

/** What a reader must know before believing a memory. `replaced`: ids that a newer memory supersedes. */
export function Marks({ memory, replaced }: { memory: Memory; replaced?: ReadonlySet<string> | undefined }) {
  const { id, valid_from, valid_to, status } = memory;
  const now = new Date().toISOString();
  return (
    <>
      {valid_to && valid_to < now && <span class="mark old">expired</span>}
      {valid_from && valid_from > now && <span class="mark">not valid yet</span>}
      {replaced?.has(id) && <span class="mark old">superseded</span>}
      {memory['x-omp-untrusted'] === true && <span class="mark bad">untrusted</span>}
      {status && status !== 'done' && <span class={`mark ${status === 'failed' ? 'bad' : ''}`}>{status}</span>}
    </>
  );
}

/** Ids that these memories replace. One that an untrusted key wrote replaces nothing. */
export const replacedBy = (memories: readonly Memory[]): ReadonlySet<string> =>
  new Set(memories.flatMap((memory) => (memory['x-omp-untrusted'] ? [] : (memory.supersedes ?? []))));

/** By whom the last change is, and which way it came; where the store can tell, with the way to all memories of the same key. */
export function Written({ memory: { 'x-omp-origin': origin, user_id: user } }: { memory: Memory }) {
  const { features } = useSession().capabilities;
  if (!origin || origin.via === 'unknown') return null;
  const { key, via } = origin;
  return (
    <span class="written">
      by{' '}
      {key !== undefined && features.origins ? (
        <a href={href('memories', { user, origin: `key:${key}` })} dir="auto">
          {key}
        </a>
      ) : (
        <span dir="auto">{key ?? 'anonymous'}</span>
      )}{' '}
      ({via})
    </span>
  );
}

/** What may be wider than the window scrolls by itself. */
export const Wide = ({ label, children }: { label: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, which the keyboard must be able to do
  <section class="wide" tabIndex={0} aria-label={label}>
    {children}
  </section>
);
