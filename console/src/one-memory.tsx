import { useEffect, useState } from 'preact/hooks';
import type { AuditEntry, Memory, MemoryClient } from '../../clients/typescript/src/index.ts';
import { useDeletion } from './deletion.tsx';
import { Marks, replacedBy, Time, Written } from './format.tsx';
import { Failure, useLoad } from './load.tsx';
import { MemoryForm } from './memory-form.tsx';
import { go, href } from './route.ts';
import { useSession } from './session.ts';
import { Versions } from './versions.tsx';

/** Steps of supersession that are followed each way. */
const MAX_STEPS = 20;
/** Newest entries of the user's audit log that are looked through. */
const MAX_ENTRIES = 1_000;
/** Memories, created after this one, that are looked through for one that supersedes it. */
const MAX_LATER = 500;

/** One memory: its fields, what it replaced and what replaced it, and who has touched it. */
export function OneMemory({ id = '' }: { id?: string }) {
  const { client } = useSession();
  const { data: memory, error, reload } = useLoad(id, (signal) => client.memories.get(id, { signal }));
  if (error !== undefined) return <Failure error={error} retry={reload} />;
  if (!memory) return <p class="empty">Reading…</p>;
  return <Shown key={memory.id} memory={memory} onChanged={reload} />;
}

function Shown({ memory, onChanged }: { memory: Memory; onChanged: () => void }) {
  const { client, capabilities } = useSession();
  const { verbs, features } = capabilities;
  const { id, user_id: user } = memory;
  const [editing, setEditing] = useState(false);
  const { leaving, deleted, start } = useDeletion();
  useEffect(() => {
    if (deleted.has(id)) go('memories', { user });
  }, [deleted]);
  const { data: line } = useLoad(features.supports_supersession ? `${id} ${memory.updated_at}` : undefined, (signal) =>
    lineOf(client, memory, signal),
  );
  const { data: entries, error } = useLoad(
    features.supports_audit ? `${id} ${memory.updated_at}` : undefined,
    (signal) => entriesOf(client, memory, signal),
  );
  const replaced = replacedBy(line?.later ?? []);
  return (
    <article class="one">
      <p>
        <a href={href('memories', { user })}>← Memories of {user}</a>
      </p>
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
        <>
          <blockquote class="content" dir="auto">
            {memory.content}
          </blockquote>
          <div class="actions">
            {verbs.includes('update') && (
              <button type="button" class="main" onClick={() => setEditing(true)}>
                Edit
              </button>
            )}
            {verbs.includes('delete') && (
              <button type="button" disabled={leaving.has(id)} onClick={() => start([memory])}>
                Delete
              </button>
            )}
            <Marks memory={memory} replaced={replaced} />
            <Written memory={memory} />
          </div>
        </>
      )}
      {features.versions && <Versions memory={memory} onChanged={onChanged} />}
      <h2>Fields</h2>
      <dl>
        {Object.entries(memory)
          .filter(([name]) => name !== 'content')
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd dir="auto">{value === null || typeof value === 'object' ? JSON.stringify(value) : String(value)}</dd>
            </div>
          ))}
      </dl>
      {line && line.earlier.length + line.later.length > 0 && (
        <>
          <h2>What replaced what</h2>
          <ol class="line">
            {[...line.earlier, memory, ...line.later].map((one) => (
              <li key={one.id} aria-current={one.id === id ? 'true' : undefined}>
                <Time of={one.created_at} />
                <a href={href('memory', { id: one.id, user })} dir="auto">
                  {one.content.slice(0, 200)}
                </a>{' '}
                <Marks memory={one} />
              </li>
            ))}
          </ol>
        </>
      )}
      {features.supports_audit && (
        <>
          <h2>Audit</h2>
          {error !== undefined && <Failure error={error} />}
          {entries?.length === 0 && <p>No entry among the newest {MAX_ENTRIES} of this user.</p>}
          {entries && entries.length > 0 && <Entries entries={entries} />}
        </>
      )}
    </article>
  );
}

export function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <div class="wide">
      <table>
        <thead>
          <tr>
            <th>Time</th>
            <th>Caller</th>
            <th>Action</th>
            <th>Outcome</th>
            <th>Scope</th>
            <th>Memory</th>
            <th>Request</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry, n) => (
            <tr key={n} class={entry.outcome === 'ok' ? '' : 'failed'}>
              <td>
                <Time of={entry.timestamp} />
              </td>
              <td>{entry.app ?? 'anonymous'}</td>
              <td>{entry.action}</td>
              <td>{entry.outcome}</td>
              <td>{entry.scope}</td>
              <td>{entry.memory_id && <a href={href('memory', { id: entry.memory_id })}>{entry.memory_id}</a>}</td>
              <td>
                <code>{entry.request_id}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

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
