import { useState } from 'preact/hooks';
import type { AuditEntry } from '../../clients/typescript/src/index.ts';
import { Failure, Reading, useLoad } from './load.tsx';
import { Entries } from './one-memory.tsx';
import { go, href } from './route.ts';
import { useSession } from './session.ts';
import { NoUser } from './start.tsx';
import { Empty, Title } from './ui.tsx';

interface Parameters {
  readonly user?: string;
  readonly app?: string;
  readonly since?: string;
  readonly until?: string;
  readonly only?: string;
}

const PAGE = 200;

/** Who did what with a user's memories. */
export function Audit({ user, ...filters }: Parameters) {
  const { capabilities } = useSession();
  if (!capabilities.features.supports_audit)
    return (
      <Empty icon="audit" title="No audit log is kept" isPage>
        <p>OMP_AUDIT is off, or this backend has no room for a log. With OMP_AUDIT=all it says who did what.</p>
      </Empty>
    );
  if (user === undefined) return <NoUser icon="audit" title="Who did what with whose memories?" />;
  return <AuditOf key={JSON.stringify([user, filters])} user={user} {...filters} />;
}

function AuditOf({ user, app = '', since = '', until = '', only = '' }: Parameters & { user: string }) {
  const { client, capabilities } = useSession();
  const [entries, setEntries] = useState<readonly AuditEntry[]>([]);
  const [cursor, setCursor] = useState<string>();
  const { data, error, reload } = useLoad(cursor ?? '', async (signal) => {
    const query = {
      user_id: user,
      app: app || undefined,
      since: since || undefined,
      until: until ? `${until}T23:59:59.999Z` : undefined,
    };
    const page = await client.audit({ ...query, limit: PAGE, cursor }, { signal }).page();
    setEntries((before) => [...before, ...page.entries]);
    return page;
  });
  const submit = (event: Event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    go('audit', { user, ...(Object.fromEntries(given) as Record<string, string>) });
  };
  const shown = only === 'failures' ? entries.filter(({ outcome }) => outcome !== 'ok') : entries;
  return (
    <>
      <Title text={`Audit log of ${user}`} about="Every request about this user, newest first." />
      <form class="filters" onSubmit={submit}>
        <label>
          Caller
          <input name="app" defaultValue={app} />
        </label>
        <label>
          From
          <input type="date" name="since" defaultValue={since} />
        </label>
        <label>
          To
          <input type="date" name="until" defaultValue={until} />
        </label>
        <label>
          Outcome
          <select name="only" defaultValue={only}>
            <option value="">all</option>
            <option value="failures">failures</option>
          </select>
        </label>
        <button type="submit">Filter</button>
        {capabilities.features.rollback && app && (
          <a href={href('rollback', { user, key: app })}>Roll back what {app} wrote</a>
        )}
      </form>
      {error !== undefined && <Failure error={error} retry={reload} />}
      {data && shown.length === 0 && (
        <Empty icon="audit" title={`No entries${data.next_cursor ? ' so far' : ''}`}>
          <p>Nobody has done what these filters ask for. Another caller or an earlier day may have.</p>
        </Empty>
      )}
      {shown.length > 0 && <Entries entries={shown} />}
      {!data && error === undefined && <Reading />}
      {data?.next_cursor && (
        <button type="button" onClick={() => setCursor(data.next_cursor ?? undefined)}>
          Older
        </button>
      )}
    </>
  );
}
