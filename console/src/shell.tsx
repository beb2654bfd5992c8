import { useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks';
import type { MemoryClient } from '../../clients/typescript/src/index.ts';
import { Audit } from './audit.tsx';
import { Deletions } from './deletion.tsx';
import { Health } from './health.tsx';
import icon from './icon.svg';
import { Icon, type IconName } from './icon.tsx';
import { Keys } from './keys.tsx';
import { Failure, useLoad } from './load.tsx';
import { MapPage } from './map.tsx';
import { Memories } from './memories.tsx';
import { Merge } from './merge.tsx';
import { OneMemory } from './one-memory.tsx';
import { Overview } from './overview.tsx';
import { Dialogs } from './palette.tsx';
import { Rollback } from './rollback.tsx';
import { go, href, useRoute } from './route.ts';
import { SearchLab } from './search-lab.tsx';
import { GATEWAY, type Session, SessionContext } from './session.ts';
import { UserPicker } from './user-picker.tsx';
import { Users } from './users.tsx';
import { Webhooks } from './webhooks.tsx';

/** The version of the gateway whose package has this console, set by Vite. */
declare const __VERSION__: string;

/** `group`: the heading above; `ofUser`: it shows the data of the user that is chosen. */
const PAGES = [
  { page: 'overview', title: 'Overview', group: '', ofUser: false, Page: Overview },
  { page: 'memories', title: 'Memories', group: '', ofUser: true, Page: Memories },
  { page: 'users', title: 'Users', group: '', ofUser: true, Page: Users },
  { page: 'search', title: 'Context lab', group: 'Understand', ofUser: true, Page: SearchLab },
  { page: 'map', title: 'Map', group: 'Understand', ofUser: true, Page: MapPage },
  { page: 'audit', title: 'Audit', group: 'Understand', ofUser: true, Page: Audit },
  { page: 'merge', title: 'Merge', group: 'Understand', ofUser: true, Page: Merge },
  { page: 'rollback', title: 'Rollback', group: 'Understand', ofUser: true, Page: Rollback },
  { page: 'keys', title: 'Keys', group: 'Gateway', ofUser: false, Page: Keys },
  { page: 'webhooks', title: 'Webhooks', group: 'Gateway', ofUser: false, Page: Webhooks },
  { page: 'health', title: 'Health', group: 'Gateway', ofUser: false, Page: Health },
] as const;

interface ConsoleProps {
  readonly client: MemoryClient;
  readonly onLock: (() => void) | undefined;
}

/** What stands around every page, and the page. */
export function Console({ client, onLock }: ConsoleProps) {
  const { page, parameters } = useRoute();
  const { data: capabilities, error, reload } = useLoad('', (signal) => client.capabilities({ signal }));
  const { works, trouble } = useHealth(client);
  const session = useMemo(
    () => capabilities && { client, capabilities, works, trouble },
    [client, capabilities, works, trouble],
  );
  const [shown, show] = useState<'palette' | 'keys'>();
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [page]);
  const { user } = parameters;
  const known = PAGES.find((one) => one.page === (page === 'memory' ? 'memories' : page)) ?? PAGES[0];
  const title = page === 'memory' ? 'Memory' : known.title;
  useLayoutEffect(() => {
    document.title = `${title}${user === undefined ? '' : ` of ${user}`}`;
  }, [title, user]);
  if (error !== undefined) return <Failure error={error} retry={reload} />;
  if (!session || !capabilities) return null;
  const pages = PAGES.filter(({ page: name }) => name !== 'rollback' || capabilities.features.rollback);
  const link = ({ page: name, title: text }: (typeof PAGES)[number]) => (
    <li key={name}>
      <a href={href(name, { user })} aria-current={name === known.page ? 'page' : undefined}>
        <Icon name={name} />
        {text}
      </a>
    </li>
  );
  return (
    <SessionContext.Provider value={session}>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the page
      </button>
      <div class="shell">
        <header class={open ? 'side open' : 'side'}>
          <a class="brand" href={href('overview', { user })}>
            <img src={icon} alt="" />
            omp-gateway
          </a>
          <button type="button" class="menu" aria-expanded={open} onClick={() => setOpen(!open)}>
            {title}
            <Icon name="down" />
          </button>
          <nav aria-label="Pages">
            {['', 'Understand', 'Gateway'].map((group) => (
              <div key={group}>
                {group && <h2>{group}</h2>}
                <ul>{pages.filter((one) => one.group === group).map(link)}</ul>
              </div>
            ))}
          </nav>
          <Gateway {...{ works, onLock }} provider={capabilities.provider} frozen={capabilities.frozen?.since} />
        </header>
        <div class="page">
          <div class="top">
            <UserPicker
              user={user ?? ''}
              onPick={(picked) => go(known.ofUser && page !== 'memory' ? known.page : 'memories', { user: picked })}
            />
            <button type="button" class="go" onClick={() => show('palette')} aria-label="Go to">
              <Icon name="find" />
              <span>Go to…</span>
              <kbd>Ctrl K</kbd>
            </button>
          </div>
          <Deletions>
            <main id="main" tabIndex={-1}>
              {page === 'memory' ? <OneMemory {...parameters} /> : <known.Page {...parameters} />}
            </main>
          </Deletions>
        </div>
      </div>
      <Dialogs
        user={user}
        shown={shown}
        onShow={show}
        pages={pages.map(({ page: name, title: text }) => ({
          text,
          icon: name satisfies IconName,
          pick: () => go(name, { user }),
        }))}
      />
    </SessionContext.Provider>
  );
}

/** How often the gateway is asked whether it works, in milliseconds. */
const EVERY = 20_000;

/** Asks as long as the console is open. */
function useHealth(client: MemoryClient): Pick<Session, 'works' | 'trouble'> {
  const [works, setWorks] = useState<boolean>();
  const [trouble, setTrouble] = useState<unknown>();
  useEffect(() => {
    const abort = new AbortController();
    let timer: number | undefined;
    const look = async () => {
      const error = await client.health({ signal: abort.signal, retries: 0 }).then(
        () => undefined,
        (cause) => cause,
      );
      if (abort.signal.aborted) return;
      setWorks(error === undefined);
      setTrouble(error);
      timer = setTimeout(look, EVERY);
    };
    void look();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [client]);
  return { works, trouble };
}

interface GatewayProps extends Pick<Session, 'works'>, Pick<ConsoleProps, 'onLock'> {
  readonly provider: string;
  /** Since when it takes no changes. */
  readonly frozen: string | undefined;
}

/** Which gateway this is, and whether it works. */
function Gateway({ works, onLock, provider, frozen }: GatewayProps) {
  const [state, text] =
    works === false
      ? ['bad', 'Does not answer']
      : frozen
        ? ['warn', 'Frozen']
        : works
          ? ['good', 'Works']
          : ['', 'Asking…'];
  return (
    <section class="gateway" aria-label="This gateway">
      <p class="state">
        <span class={`dot ${state}`} />
        {text}
      </p>
      <p>
        {provider} · {__VERSION__}
      </p>
      <p>{GATEWAY.replace(/^https?:\/\/|\/$/g, '')}</p>
      {onLock && (
        <button type="button" class="quiet" onClick={onLock}>
          <Icon name="leave" />
          Forget key
        </button>
      )}
    </section>
  );
}
