import { useEffect, useState } from 'preact/hooks';
import type { LeftOut, Memory, RollbackItem, RollbackPage, RollbackQuery } from '../../clients/typescript/src/index.ts';
import { Confirmation } from './confirmation.tsx';
import { Difference } from './difference.tsx';
import { count, Marks, Time, Written } from './format.tsx';
import { Failure, Missing, useLoad } from './load.tsx';
import { go, href } from './route.ts';
import { useSession } from './session.ts';
import { NoUser } from './start.tsx';
import { Empty, Title } from './ui.tsx';

interface Parameters {
  readonly user?: string;
  /** ISO 8601, as in a request. */
  readonly since?: string;
  readonly until?: string;
  readonly key?: string;
  /** Not empty: of callers without a key. */
  readonly anonymous?: string;
}

/** Undoes what was written to a user's memories in a time, by a caller: first as a list of what would happen. */
export function Rollback({ user, since = '', until = '', key = '', anonymous = '' }: Parameters) {
  const { features } = useSession().capabilities;
  const [looks, setLooks] = useState(0);
  if (!features.rollback) return <Empty icon="rollback" title="This backend cannot roll back" isPage />;
  if (user === undefined) return <NoUser icon="rollback" title="Whose memories?" />;
  const query: RollbackQuery = {
    since,
    until: until || undefined,
    key: anonymous ? '' : key || undefined,
  };
  return (
    <div class="one" key={JSON.stringify([user, query, looks])}>
      <Title
        text={`Roll back the memories of ${user}`}
        about="Undoes what was written in a time: a memory that was added is deleted, one that was changed gets the version before. What somebody else has changed since stays as it is. Nothing happens before you have seen what would."
      />
      <What
        user={user}
        since={since}
        until={until}
        caller={key}
        anonymous={anonymous}
        onLook={() => setLooks(looks + 1)}
      />
      {since !== '' && <Plan user={user} query={query} />}
    </div>
  );
}

interface WhatProps {
  readonly user: string;
  readonly since: string;
  readonly until: string;
  readonly caller: string;
  readonly anonymous: string;
  /** Also if nothing in the address changes. */
  readonly onLook: () => void;
}

const DAY_MS = 86_400_000;

function What({ user, since, until, caller, anonymous, onLook }: WhatProps) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(given.get(name) ?? '');
    // To the end of the second.
    const to = text('until') && toIso(`${text('until').padEnd(19, ':00')}.999`);
    go('rollback', { user, since: toIso(text('since')), until: to, key: text('key'), anonymous: text('anonymous') });
    onLook();
  };
  return (
    <form class="filters" onSubmit={submit}>
      <label>
        From
        <input
          type="datetime-local"
          name="since"
          step="1"
          required
          defaultValue={toLocal(since || new Date(Date.now() - DAY_MS).toISOString())}
        />
      </label>
      <label>
        To; empty: now
        <input type="datetime-local" name="until" step="1" defaultValue={until && toLocal(until)} />
      </label>
      <label>
        Key; empty: everybody
        <input name="key" defaultValue={caller} autocomplete="off" spellcheck={false} />
      </label>
      <label class="box">
        <input type="checkbox" name="anonymous" defaultChecked={anonymous !== ''} />
        callers without a key
      </label>
      <button type="submit" class="main">
        Show what would happen
      </button>
    </form>
  );
}

/** A field of the page has a time in the reader's time zone. */
const toIso = (local: string): string => new Date(local).toISOString();
const toLocal = (iso: string): string => {
  const time = new Date(iso);
  const local = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return Number.isNaN(local.getTime()) ? '' : local.toISOString().slice(0, 19);
};

interface Walk {
  readonly items: readonly RollbackItem[];
  /** Where it goes on; undefined: at the beginning, or it is finished. */
  readonly cursor?: string | undefined;
  readonly finished: boolean;
  /** The last page. */
  readonly leftOut?: LeftOut & Pick<RollbackPage, 'deletes_known'>;
  readonly error?: unknown;
}

/** Asks page after page, once there is a query; without `dry_run`, each page undoes what it names. */
function useWalk(user: string, query: RollbackQuery | undefined): Walk & { resume(): void } {
  const { client } = useSession();
  const [walk, setWalk] = useState<Walk>({ items: [], finished: false });
  const [attempts, setAttempts] = useState(0);
  useEffect(() => {
    if (!query) return;
    const abort = new AbortController();
    const { signal } = abort;
    const goOn = async () => {
      let { items, cursor } = walk;
      do {
        const page = await client.users.rollback(user, { ...query, cursor }, { signal }).page();
        items = [...items, ...page.items];
        cursor = page.next_cursor ?? undefined;
        if (signal.aborted) return;
        setWalk({ items, cursor, finished: cursor === undefined, leftOut: page });
      } while (cursor !== undefined);
    };
    goOn().catch((error) => signal.aborted || setWalk((now) => ({ ...now, error })));
    return () => abort.abort();
  }, [query !== undefined, attempts]);
  const resume = () => {
    setWalk({ ...walk, error: undefined });
    setAttempts(attempts + 1);
  };
  return { ...walk, resume };
}

type Action = RollbackItem['action'];

/** What happens to memories, as it is said of the plan and afterwards. */
const GROUPS: readonly { readonly action: Action; readonly plan: string; readonly done: string }[] = [
  { action: 'delete', plan: 'Would be deleted', done: 'Deleted' },
  { action: 'restore', plan: 'Would get an earlier version back', done: 'Got an earlier version back' },
  { action: 'keep', plan: 'Would stay as they are', done: 'Stayed as they were' },
  { action: 'deleted', plan: 'Deleted then, which cannot be undone', done: 'Deleted then, which cannot be undone' },
];

const REASONS = {
  changed_since: 'it has been changed since',
  no_version: 'the version before is not kept',
  rolled_back: 'it is rolled back already',
  unchanged: 'it says what it said before',
  rejected: 'the store does not take the version back',
} as const;

const of = (items: readonly RollbackItem[], action: Action) => items.filter((item) => item.action === action);

/** When the newest of these memories was written, by the clock of the gateway: what is written later was not in the plan. */
const newest = (items: readonly RollbackItem[]): string | undefined =>
  items
    .map(({ memory }) => memory?.['x-omp-origin']?.at ?? memory?.updated_at ?? '')
    .sort()
    .at(-1) || undefined;

/** What would happen, all of it; then what has. */
function Plan({ user, query }: { user: string; query: RollbackQuery }) {
  const plan = useWalk(user, { ...query, dry_run: true });
  const [approved, setApproved] = useState(false);
  const undo = useWalk(user, approved ? { ...query, until: query.until ?? newest(plan.items) } : undefined);
  const { items, finished, error, resume, leftOut } = approved ? undo : plan;
  const changes = of(items, 'delete').length + of(items, 'restore').length;
  const planned = new Map(plan.items.map(({ id, action }) => [id, action]));
  return (
    <>
      <p role="status">
        {!approved && !finished && `${count(items.length)} memories looked at…`}
        {!approved && finished && changes === 0 && 'There is nothing to roll back.'}
        {approved && finished && `Rolled back: ${memories(changes)}.`}
      </p>
      {approved && !finished && (
        <label>
          {count(items.length)} of {count(plan.items.length)}; stay on this page
          <progress max={plan.items.length} value={items.length} />
        </label>
      )}
      {error !== undefined && <Failure error={error} retry={resume} />}
      <Missing from={leftOut} />
      {leftOut?.deletes_known === false && <p>Without an audit log it is not known what was deleted.</p>}
      {!approved && finished && changes > 0 && (
        <Approve user={user} items={items} onApproved={() => setApproved(true)} />
      )}
      {GROUPS.map(({ action, ...titles }) => (
        <Group
          key={`${action} ${approved}`}
          title={approved ? titles.done : titles.plan}
          items={of(items, action)}
          planned={approved ? planned : undefined}
        />
      ))}
    </>
  );
}

const memories = (size: number): string => (size === 1 ? 'one memory' : `${count(size)} memories`);

interface ApproveProps {
  readonly user: string;
  readonly items: readonly RollbackItem[];
  readonly onApproved: () => void;
}

function Approve({ user, items, onApproved }: ApproveProps) {
  const [deleted, restored] = [of(items, 'delete').length, of(items, 'restore').length];
  const what = `Roll back ${memories(deleted + restored)}`;
  return (
    <Confirmation id="approve" button={what} title={`${what} of ${user}?`} action="Roll back" onConfirmed={onApproved}>
      <ul>
        {deleted > 0 && <li>Deleted, with their versions: {memories(deleted)}. There is no way back.</li>}
        {restored > 0 && (
          <li>Get an earlier version back, as a new version: {memories(restored)}. What they say now is kept.</li>
        )}
        <li>Only what the list shows is undone. What is written or changed after it stays.</li>
      </ul>
    </Confirmation>
  );
}

/** Memories of a group that are shown at first, and with each step. */
const STEP = 50;

interface GroupProps {
  readonly title: string;
  readonly items: readonly RollbackItem[];
  /** What the list said; undefined: this is the list. */
  readonly planned: ReadonlyMap<string | null, Action> | undefined;
}
interface ItemProps extends Pick<GroupProps, 'planned'> {
  readonly item: RollbackItem;
}

function Group({ title, items, planned }: GroupProps) {
  const [most, setMost] = useState(STEP);
  if (items.length === 0) return null;
  return (
    <section>
      <h2>
        {title}: {count(items.length)}
      </h2>
      <ol class="versions">
        {items.slice(0, most).map((item, n) => (
          <Item key={item.id ?? n} item={item} planned={planned} />
        ))}
      </ol>
      {items.length > most && (
        <button type="button" onClick={() => setMost(most + STEP)}>
          Show {count(Math.min(STEP, items.length - most))} more
        </button>
      )}
    </section>
  );
}

function Item({ item: { id, action, reason, version, memory }, planned }: ItemProps) {
  const { client } = useSession();
  const { data: before, error } = useLoad(
    id !== null && version !== undefined && memory ? `${id} ${version}` : undefined,
    (signal) => client.memories.getVersion(id ?? '', version ?? 0, { signal }),
  );
  return (
    <li>
      <p>
        {memory ? (
          <>
            {planned && action === 'delete' ? (
              id
            ) : (
              <a href={href('memory', { id: memory.id, user: memory.user_id })}>{id}</a>
            )}{' '}
            <Time of={memory.updated_at} /> <Written memory={memory} /> <Marks memory={memory} />
          </>
        ) : (
          (id ?? 'All memories of the user, which were erased')
        )}{' '}
        {version !== undefined && <span class="mark">version {version}</span>}{' '}
        {planned && planned.get(id) !== action && <span class="mark bad">otherwise than listed</span>}{' '}
        {reason && REASONS[reason]}
      </p>
      {error !== undefined && <Failure error={error} />}
      {memory && <Difference before={memory} after={afterwards(action, memory, before?.memory)} />}
      {!memory && action !== 'deleted' && <small>The key of this tab may not read it.</small>}
    </li>
  );
}

/** The memory as the action leaves it; undefined: deleted. */
function afterwards(action: Action, memory: Memory, before: Memory | undefined): Memory | undefined {
  if (action === 'delete') return undefined;
  return action === 'restore' && before ? before : memory;
}
