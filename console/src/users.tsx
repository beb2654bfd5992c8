import { useState } from 'preact/hooks';
import type { Erased, ErasureReceipt, Stats, User } from '../../clients/typescript/src/index.ts';
import { Bars } from './chart.tsx';
import { Confirmation } from './confirmation.tsx';
import { count, counted, Time } from './format.tsx';
import { Failure, Missing, Reading, useLoad } from './load.tsx';
import { href } from './route.ts';
import { saveLines } from './save-file.ts';
import { useSession } from './session.ts';
import { type Column, Empty, Table, Title } from './ui.tsx';

const PAGE = 100;

/** All users that the key reaches, or one of them. */
export function Users({ user }: { user?: string }) {
  const { capabilities } = useSession();
  if (user !== undefined) return capabilities.features.stats ? <OneUser key={user} user={user} /> : <NoStats />;
  return capabilities.features.users ? (
    <AllUsers />
  ) : (
    <Empty icon="users" title="This backend cannot list its users" isPage>
      <p>Type the id of one above.</p>
    </Empty>
  );
}

const NoStats = () => <Empty icon="users" title="This backend cannot count the memories of a user" isPage />;

function AllUsers() {
  const { client } = useSession();
  const [users, setUsers] = useState<readonly User[]>([]);
  const [cursor, setCursor] = useState<string>();
  const { data, error, reload } = useLoad(cursor ?? '', async (signal) => {
    const page = await client.users.list({ limit: PAGE, cursor }, { signal }).page();
    setUsers((before) => [...before, ...page.items]);
    return page;
  });
  return (
    <>
      <Title text="Users" about="Everybody about whom this key may read memories." />
      {error !== undefined && <Failure error={error} retry={reload} />}
      <Missing from={data} />
      {users.length === 0 && data && (
        <Empty icon="users" title="Nobody has memories that this key may read">
          <p>
            The <a href={href('overview')}>overview</a> has three ways to add some.
          </p>
        </Empty>
      )}
      {users.length > 0 && <Table label="Users" rows={users} columns={COLUMNS} />}
      {!data && error === undefined && <Reading />}
      {data?.next_cursor && (
        <button type="button" onClick={() => setCursor(data.next_cursor ?? undefined)}>
          More
        </button>
      )}
    </>
  );
}

const COLUMNS: readonly Column<User>[] = [
  {
    name: 'User',
    cell: ({ user_id: user }) => (
      <a href={href('users', { user })} dir="auto">
        {user}
      </a>
    ),
    by: ({ user_id }) => user_id,
  },
  {
    name: 'Memories',
    cell: ({ user_id: user, count: size }) => <a href={href('memories', { user })}>{count(size)}</a>,
    by: ({ count: size }) => size,
    isNumber: true,
  },
  { name: 'Last change', cell: ({ last_write }) => <Time of={last_write} />, by: ({ last_write }) => last_write },
];

function OneUser({ user }: { user: string }) {
  const { client, capabilities } = useSession();
  const { data: stats, error, reload } = useLoad(user, (signal) => client.users.stats(user, { signal }));
  const [erased, setErased] = useState<Erased>();
  if (error !== undefined) return <Failure error={error} retry={reload} />;
  if (!stats) return <Reading />;
  return (
    <>
      <Title
        text={user}
        about={
          <>
            First memory <Time of={stats.oldest} />, last change <Time of={stats.last_write} />.
          </>
        }
      >
        <a class="button main" href={href('memories', { user })}>
          Show {counted(stats.count, 'memory', 'memories')}
        </a>
      </Title>
      <Missing from={stats} />
      <Limits of={stats.limits} />
      {erased?.receipt && <Receipt of={erased.receipt} />}
      <Growth created={stats.created} />
      <div class="orders">
        <Largest
          title="Largest scopes"
          rows={stats.scopes.map(({ scope, count: size }) => [scope, size])}
          href={(scope) => href('memories', { user, scope })}
        />
        <Largest
          title="Most used tags"
          rows={stats.tags.map(({ tag, count: size }) => [tag, size])}
          href={(tag) => href('memories', { user, tag })}
        />
      </div>
      {capabilities.features.person_file && <SaveAll user={user} />}
      <p>
        <a href={href('merge', { user })}>Merge what says nearly the same</a>
      </p>
      {capabilities.features.rollback && (
        <p>
          <a href={href('rollback', { user })}>Roll back what was written in a time</a>
        </p>
      )}
      {capabilities.features.erase && stats.count > 0 && (
        <Erase
          user={user}
          stats={stats}
          onErased={(answer) => {
            setErased(answer);
            reload();
          }}
        />
      )}
    </>
  );
}

/** The file of a person, for who asks what is stored of them. */
function SaveAll({ user }: { user: string }) {
  const { client } = useSession();
  const [state, setState] = useState<{ reading?: true; error?: unknown; missing?: boolean }>({});
  const save = async () => {
    setState({ reading: true });
    try {
      const lines: string[] = [];
      let missing = false;
      for await (const line of client.users.file(user)) {
        lines.push(`${JSON.stringify(line)}\n`);
        missing ||= line.type === 'missing';
      }
      saveLines(lines, `person-${user}.jsonl`);
      setState({ missing });
    } catch (error) {
      setState({ error });
    }
  };
  return (
    <>
      <p>
        <button type="button" disabled={state.reading} onClick={() => void save()}>
          Everything of this user
        </button>
      </p>
      {state.missing && <p class="missing">Something could not be read: the file names it.</p>}
      {state.error !== undefined && <Failure error={state.error} />}
    </>
  );
}

const LIMITS = { memories: 'Memories', bytes: 'Bytes', adds_per_day: 'Adds today' } as const;

function Limits({ of }: { of: Stats['limits'] }) {
  const rows = Object.entries(of ?? {}).filter(([, { limit }]) => limit !== null);
  if (rows.length === 0) return null;
  return (
    <ol class="results">
      {rows.map(([kind, { used, limit }]) => (
        <li key={kind}>
          <meter max={limit || 1} value={used} aria-hidden="true" />
          {LIMITS[kind as keyof typeof LIMITS]}: {count(used)} of {count(limit as number)}
        </li>
      ))}
    </ol>
  );
}

/** When the memories that are there were added. */
function Growth({ created }: Pick<Stats, 'created'>) {
  const { per, counts } = created;
  const [first, last] = [counts[0], counts.at(-1)];
  if (!first || !last || first === last) return null;
  const known = new Map(counts.map(({ from, count: size }) => [from, size]));
  const bars = [];
  for (let day = new Date(first.from); day <= new Date(last.from); day = after(day, per)) {
    const from = day.toISOString().slice(0, 10);
    bars.push({ label: per === 'day' ? from : from.slice(0, 7), value: known.get(from) ?? 0 });
  }
  return <Bars title={`Memories by the ${per} in which they were added (UTC)`} bars={bars} />;
}

const after = (day: Date, per: 'day' | 'month'): Date =>
  per === 'day'
    ? new Date(day.getTime() + 86_400_000)
    : new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1));

interface LargestProps {
  readonly title: string;
  readonly rows: readonly (readonly [name: string | null, size: number])[];
  readonly href: (name: string) => string;
}

function Largest({ title, rows, href: to }: LargestProps) {
  if (rows.length === 0) return null;
  const most = Math.max(...rows.map(([, size]) => size));
  return (
    <section>
      <h2>{title}</h2>
      <ol class="results">
        {rows.slice(0, 20).map(([name, size]) => (
          <li key={name}>
            <meter min={0} max={most} value={size} aria-label={`${size} memories`} />
            <b>{count(size)}</b>
            {name === null ? 'without a scope' : <a href={to(name)}>{name}</a>}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** Counts of what a store had, or has. */
const held = (counts: object) =>
  Object.entries(counts)
    .map(([kind, size]) => `${count(size)} ${kind.replaceAll('_', ' ')}`)
    .join(', ') || 'nothing';

const Receipt = ({ of: { complete, stores, kept } }: { of: ErasureReceipt }) => (
  <section class="receipt">
    <h2>{complete ? 'Erased, and read back as empty' : 'Not all is known to be erased: erase again'}</h2>
    <ul>
      {stores.map(({ name, removed, left, read_back }) => (
        <li key={name}>
          {name}: removed {held(removed)}; read back ({read_back}): {held(left)}
        </li>
      ))}
      {kept.map(({ what, count: size, why }) => (
        <li key={what}>
          Kept: {size} {what.replaceAll('_', ' ')}, {why}
        </li>
      ))}
    </ul>
  </section>
);

function Erase({ user, stats, onErased }: { user: string; stats: Stats; onErased: (erased: Erased) => void }) {
  const { client } = useSession();
  const [typed, setTyped] = useState('');
  return (
    <>
      <h2>Erase</h2>
      <Confirmation
        id="erase"
        button={`Erase everything about ${user}`}
        title={`Erase everything about ${user}?`}
        action="Erase"
        disabled={typed !== user}
        onConfirmed={() => client.users.erase(user).then(onErased)}
      >
        <ul>
          <li>All {count(stats.count)} memories are deleted at once, expired and superseded ones too.</li>
          <li>There is no way back. To keep a copy, save the memories as NDJSON first.</li>
          <li>The audit log stays: it has no contents. It records this erasure and who asked for it.</li>
        </ul>
        <label>
          Type {user} to go on
          <input
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
      </Confirmation>
    </>
  );
}
