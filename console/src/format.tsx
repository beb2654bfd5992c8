import type { Memory } from '../../clients/typescript/src/index.ts';
import { Icon } from './icon.tsx';
import { href } from './route.ts';
import { useSession } from './session.ts';

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'long' });
const NUMBER = new Intl.NumberFormat();

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;
/** After this many days, the date says more. */
const DAYS = 30;

/** How long ago it was, or how far ahead it is; of what is long ago, the day. */
function relative(time: Date): string {
  const distance = time.getTime() - Date.now();
  if (Math.abs(distance) >= DAYS * UNITS[0][1]) return DAY.format(time);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(distance) >= size) ?? [];
  return unit ? RELATIVE.format(Math.trunc(distance / size), unit) : distance > 0 ? 'in a moment' : 'just now';
}

/** A time as its distance from now; its tooltip has the exact time in the reader's time zone. */
export function Time({ of }: { of: string | null | undefined }) {
  if (!of) return null;
  const time = new Date(of);
  return (
    <time dateTime={of} title={TIME.format(time)}>
      {relative(time)}
    </time>
  );
}

export const count = (value: number): string => NUMBER.format(value);
export const counted = (value: number, one: string, many: string): string =>
  `${count(value)} ${value === 1 ? one : many}`;

interface MarksProps {
  readonly memory: Memory;
  /** Ids that a newer memory supersedes. */
  readonly replaced?: ReadonlySet<string> | undefined;
  /** Says too that nothing is wrong. */
  readonly isTrustShown?: boolean;
}

/** What a reader must know before believing a memory. */
export function Marks({ memory, replaced, isTrustShown = false }: MarksProps) {
  const { id, valid_from, valid_to, status } = memory;
  const now = new Date().toISOString();
  const isUntrusted = memory['x-omp-untrusted'] === true;
  const via = memory['x-omp-origin']?.via;
  return (
    <>
      {isTrustShown && !isOver(memory, replaced) && <span class="mark good">valid</span>}
      {isTrustShown && !isUntrusted && via && via !== 'unknown' && <span class="mark">trusted</span>}
      {valid_to && valid_to < now && <span class="mark old">expired</span>}
      {valid_from && valid_from > now && <span class="mark warn">not valid yet</span>}
      {replaced?.has(id) && <span class="mark old">superseded</span>}
      {isUntrusted && <span class="mark bad">untrusted</span>}
      {status && status !== 'done' && <span class={`mark ${status === 'failed' ? 'bad' : 'warn'}`}>{status}</span>}
    </>
  );
}

/** Whether it is not current: not valid now, or replaced. */
export function isOver({ id, valid_from, valid_to }: Memory, replaced?: ReadonlySet<string>): boolean {
  const now = new Date().toISOString();
  return Boolean(replaced?.has(id) || (valid_to && valid_to < now) || (valid_from && valid_from > now));
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

interface ChipsProps {
  readonly memory: Pick<Memory, 'scope' | 'tags'>;
  /** The address of the list with this filter. */
  readonly to: (changed: { readonly scope?: string; readonly tag?: string }) => string;
}

/** The scope and the tags, each with the way to the others that have it. */
export const Chips = ({ memory: { scope, tags }, to }: ChipsProps) => (
  <>
    {scope && (
      <a class="chip scope" href={to({ scope })}>
        <Icon name="scope" />
        {scope}
      </a>
    )}
    {tags?.map((tag) => (
      <a key={tag} class="chip tag" href={to({ tag })}>
        <Icon name="tag" />
        {tag}
      </a>
    ))}
  </>
);
