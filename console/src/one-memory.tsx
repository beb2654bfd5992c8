import { useEffect, useState } from 'preact/hooks';
import { type AuditEntry, type Memory, type MemoryClient, NotFoundError } from '../../clients/typescript/src/index.ts';
import { Copyable } from './copyable.tsx';
import { useDeletion } from './deletion.tsx';
import { Chips, Marks, replacedBy, Time, Written } from './format.tsx';
import { Icon } from './icon.tsx';
import { Failure, Reading, useLoad } from './load.tsx';
import { MemoryForm } from './memory-form.tsx';
import { go, href } from './route.ts';
import { useSession } from './session.ts';
import { Empty, Menu, type MenuItem, Table } from './ui.tsx';
import { Versions } from './versions.tsx';

/** Steps of supersession that are followed each way. */
const MAX_STEPS = 20;
/** Newest entries of the user's audit log that are looked through. */
const MAX_ENTRIES = 1_000;
/** Memories, created after this one, that are looked through for one that supersedes it. */
const MAX_LATER = 500;

/** One memory: its text and what is known of it, its versions, what it replaced and what replaced it, and who has touched it. */
export function OneMemory({ id = '', user }: { id?: string; user?: string }) {
  const { client } = useSession();
  const { data: memory, error, reload } = useLoad(id, (signal) => client.memories.get(id, { signal }));
  if (error instanceof NotFoundError)
    return (
      <Empty icon="memories" title="No memory has this id" isPage>
        <p>It may be deleted, or this key may not read it.</p>
        <a href={href('memories', { user })}>{user ? `Memories of ${user}` : 'All memories'}</a>
      </Empty>
    );
  if (error !== undefined) return <Failure error={error} retry={reload} />;
  if (!memory) return <Reading />;
  return <Shown key={memory.id} memory={memory} onChanged={reload} />;
}

function Shown({ memory, onChanged }: { memory: Memory; onChanged: () => void }) {
  const { client, capabilities } = useSession();
  const { verbs, features } = capabilities;
  const { id, user_id: user } = memory;
  const [editing, setEditing] = useState(false);
  const [isJson, setJson] = useState(false);
  const { leaving, deleted, start } = useDeletion();
  useEffect(() => {
    if (deleted.has(id)) go('memories', { user });
  }, [deleted]);
  const { data: line } = useLoad(features.supports_supersession ? `${id} ${memory.updated_at}` : undefined, (signal) =>
    lineOf(client, memory, signal),
  );
  const items: readonly MenuItem[] = [
    { text: 'Copy the text', icon: 'copy', run: () => void navigator.clipboard?.writeText(memory.content) },
    { text: 'Copy the id', icon: 'copy', run: () => void navigator.clipboard?.writeText(id) },
    ...(features.origins && memory['x-omp-origin']?.key !== undefined
      ? [
          {
            text: 'All that this key wrote',
            icon: 'filter' as const,
            run: () => go('memories', { user, origin: `key:${memory['x-omp-origin']?.key}` }),
          },
        ]
      : []),
  ];
  return (
    <article class="one">
      <nav class="crumbs" aria-label="Where this is">
        <a href={href('memories', { user })}>Memories of {user}</a>
        <div class="actions">
          <button type="button" aria-expanded={isJson} onClick={() => setJson(!isJson)}>
            JSON
          </button>
          {verbs.includes('delete') && (
            <button type="button" class="danger" disabled={leaving.has(id)} onClick={() => start([memory])}>
              <Icon name="remove" />
              Delete
            </button>
          )}
          {verbs.includes('update') && !editing && (
            <button type="button" class="main" onClick={() => setEditing(true)}>
              <Icon name="edit" />
              Edit
            </button>
          )}
          <Menu label="More" items={items} />
        </div>
      </nav>
      <h1 class="hidden">Memory {id}</h1>
      {editing ? (
        <MemoryForm
          user={user}
          memory={memory}
          onSaved={() => {
            setEditing(false);
            onChanged();
          }}
          onCancel={() => setEditing(false)}
        />
      ) : (
        <blockquote class="content" dir="auto" tabIndex={memory.content.length > LONG ? 0 : undefined}>
          {memory.content}
        </blockquote>
      )}
      <div class="chips">
        <Marks memory={memory} replaced={replacedBy(line?.later ?? [])} isTrustShown />
        <Chips memory={memory} to={(changed) => href('memories', { user, ...changed })} />
      </div>
      <p class="facts">
        <Facts memory={memory} />
      </p>
      {isJson && <Copyable text={JSON.stringify(memory, null, 2)} what="the memory as JSON" />}
      {line && line.earlier.length + line.later.length > 0 && <Line memory={memory} {...line} />}
      {features.versions && <Versions memory={memory} onChanged={onChanged} />}
      {features.supports_audit && <Touched memory={memory} />}
    </article>
  );
}

/** Characters of a text that may be higher than its box. */
const LONG = 1_500;

/** When it was added and changed, and by whom, in a sentence. */
function Facts({ memory }: { memory: Memory }) {
  const { created_at, updated_at, valid_from, valid_to, source, confidence, embedding_model } = memory;
  return (
    <>
      <span>
        Added <Time of={created_at} />
        {source?.app && ` from ${source.app}`}
        {source?.type && ` (${source.type})`}
      </span>
      {updated_at && updated_at !== created_at && (
        <span>
          changed <Time of={updated_at} />
        </span>
      )}
      <Written memory={memory} />
      {valid_from && (
        <span>
          valid from <Time of={valid_from} />
        </span>
      )}
      {valid_to && (
        <span>
          valid until <Time of={valid_to} />
        </span>
      )}
      {typeof confidence === 'number' && <span>confidence {confidence}</span>}
      {embedding_model && <span>embedded by {embedding_model}</span>}
    </>
  );
}

interface LineProps {
  readonly memory: Memory;
  readonly earlier: readonly Memory[];
  readonly later: readonly Memory[];
}

/** What replaced what, oldest first. */
const Line = ({ memory, earlier, later }: LineProps) => (
  <>
    <h2>What replaced what</h2>
    <ol class="line">
      {[...earlier, memory, ...later].map((one) => (
        <li key={one.id} aria-current={one.id === memory.id ? 'true' : undefined}>
          <Time of={one.created_at} />
          <a href={href('memory', { id: one.id, user: memory.user_id })} dir="auto">
            {one.content.slice(0, 200)}
          </a>{' '}
          <Marks memory={one} />
        </li>
      ))}
    </ol>
  </>
);

/** The audit entries of a memory. */
function Touched({ memory }: { memory: Memory }) {
  const { client } = useSession();
  const { data: entries, error } = useLoad(`${memory.id} ${memory.updated_at}`, (signal) =>
    entriesOf(client, memory, signal),
  );
  return (
    <>
      <h2>Audit</h2>
      {error !== undefined && <Failure error={error} />}
      {entries?.length === 0 && <p class="soft">No entry among the newest {MAX_ENTRIES} of this user.</p>}
      {entries && entries.length > 0 && <Entries entries={entries} isOfOne />}
    </>
  );
}

const COLUMNS = [
  {
    name: 'Time',
    cell: ({ timestamp }: AuditEntry) => <Time of={timestamp} />,
    by: ({ timestamp }: AuditEntry) => timestamp,
  },
  { name: 'Caller', cell: ({ app }: AuditEntry) => app ?? 'anonymous', by: ({ app }: AuditEntry) => app },
  { name: 'Action', cell: ({ action }: AuditEntry) => action, by: ({ action }: AuditEntry) => action },
  {
    name: 'Outcome',
    cell: ({ outcome }: AuditEntry) => <span class={`mark ${outcome === 'ok' ? 'good' : 'bad'}`}>{outcome}</span>,
    by: ({ outcome }: AuditEntry) => outcome,
  },
  { name: 'Scope', cell: ({ scope }: AuditEntry) => scope, by: ({ scope }: AuditEntry) => scope },
  {
    name: 'Memory',
    cell: ({ memory_id: id }: AuditEntry) => id && <a href={href('memory', { id })}>{id}</a>,
  },
  { name: 'Request', cell: ({ request_id }: AuditEntry) => <code>{request_id}</code> },
];

/** `isOfOne`: of one memory, which need not be named again. */
export const Entries = ({ entries, isOfOne = false }: { entries: readonly AuditEntry[]; isOfOne?: boolean }) => (
  <Table
    label="Audit entries"
    rows={entries}
    columns={isOfOne ? COLUMNS.filter(({ name }) => name !== 'Memory') : COLUMNS}
    className={({ outcome }) => (outcome === 'ok' ? '' : 'failed')}
  />
);

/** What this memory replaced, and what replaced it, each oldest first. */
async function lineOf(client: MemoryClient, memory: Memory, signal: AbortSignal) {
  const earlier: Memory[] = [];
  const open = [...(memory.supersedes ?? [])];
  for (let id = open.shift(); id !== undefined && earlier.length < MAX_STEPS; id = open.shift()) {
    // It may be deleted, or hidden from this key.
    const one = await client.memories.get(id, { signal }).catch(() => undefined);
    if (!one || one.id === memory.id || earlier.some((known) => known.id === one.id)) continue;
    earlier.push(one);
    open.push(...(one.supersedes ?? []));
  }
  const { items } = await client.memories
    .list({ user_id: memory.user_id, since: memory.created_at, limit: MAX_LATER }, { signal })
    .page();
  const later: Memory[] = [];
  const ids = new Set([memory.id]);
  for (const one of items.reverse()) {
    if (!one.supersedes?.some((id) => ids.has(id)) || ids.has(one.id)) continue;
    ids.add(one.id);
    later.push(one);
  }
  return { earlier: earlier.sort((a, b) => a.created_at.localeCompare(b.created_at)), later };
}

async function entriesOf(client: MemoryClient, { id, user_id }: Memory, signal: AbortSignal): Promise<AuditEntry[]> {
  const { entries } = await client.audit({ user_id, limit: MAX_ENTRIES }, { signal }).page();
  return entries.filter(({ memory_id }) => memory_id === id);
}
