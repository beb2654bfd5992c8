import { useEffect, useState } from 'preact/hooks';
import { type LeftOut, type Memory, ScopeDeniedError, version } from '../../clients/typescript/src/index.ts';
import { Confirmation } from './confirmation.tsx';
import { Difference } from './difference.tsx';
import { Chips, count, isOver, replacedBy, Time, Written } from './format.tsx';
import { Failure, Missing } from './load.tsx';
import { href } from './route.ts';
import { useSession } from './session.ts';
import { NoUser } from './start.tsx';
import { Empty, Title } from './ui.tsx';

/** Memories that are looked at before somebody asks for more; each takes a search. */
const PAGE = 200;
/** Searches at a time. */
const AT_ONCE = 4;
/** Results of a search: the memory itself, and ten that say nearly the same. */
const HITS = 11;
/** Characters of a text that are searched for, since the search is an address. */
const MAX_QUERY = 1_000;

/** Memories of a user that say nearly the same, to be made one. */
export function Merge({ user }: { user?: string }) {
  const { verbs, limits } = useSession().capabilities;
  const least = limits?.similar_score;
  if (typeof least !== 'number' || !verbs.includes('list'))
    return <Empty icon="merge" title="This backend cannot search for what says nearly the same" isPage />;
  if (user === undefined) return <NoUser icon="merge" title="Whose memories?" />;
  return <Groups key={user} user={user} least={least} />;
}

interface Member {
  readonly memory: Memory;
  /** For the text of the first of the group. */
  readonly score?: number;
}
type Group = readonly [Member, ...Member[]];

interface Walk {
  readonly groups: readonly Group[];
  readonly looked: number;
  /** Listed, but not looked at yet. */
  readonly rest: readonly Memory[];
  /** Ids that the listed memories replace. */
  readonly replaced: ReadonlySet<string>;
  /** Of the next page; null: there is none. */
  readonly cursor?: string | null;
  readonly leftOut?: LeftOut;
  readonly error?: unknown;
}

/** Searches for the text of one current memory after the other, newest first. A memory is in one group only. */
function useGroups(user: string, least: number) {
  const { client } = useSession();
  const [walk, setWalk] = useState<Walk>({ groups: [], looked: 0, rest: [], replaced: new Set() });
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    let now: Walk = { ...walk, error: undefined };
    const show = (changed: Partial<Walk>) => {
      now = { ...now, ...changed };
      if (!signal.aborted) setWalk(now);
    };
    const readPage = async () => {
      const query = { user_id: user, untrusted: false, limit: PAGE, cursor: now.cursor ?? undefined };
      const page = await client.memories.list(query, { signal }).page();
      const replaced = new Set([...now.replaced, ...replacedBy(page.items)]);
      const rest = page.items.filter((memory) => !isOver(memory, replaced));
      show({ rest, replaced, cursor: page.next_cursor ?? null, leftOut: page });
    };
    const hitsOf = async ({ content }: Memory) => {
      const q = content.trim().slice(0, MAX_QUERY);
      const query = { q, user_id: user, untrusted: false, current: true, min_score: least, limit: HITS };
      return (await client.memories.search(query, { signal })).results;
    };
    const goOn = async () => {
      if (now.rest.length === 0) await readPage();
      while (now.rest.length > 0) {
        const groups = [...now.groups];
        const grouped = new Set(groups.flat().map(({ memory }) => memory.id));
        const next = now.rest.slice(0, AT_ONCE);
        const alone = next.filter(({ id }) => !grouped.has(id));
        const found = await Promise.all(alone.map(hitsOf));
        for (const [n, memory] of alone.entries()) {
          const others = (found[n] ?? []).filter(
            ({ memory: other }) =>
              other.id !== memory.id &&
              !grouped.has(other.id) &&
              !now.replaced.has(other.id) &&
              !sessionStorage.getItem(pairOf(memory, other)),
          );
          if (grouped.has(memory.id) || others.length === 0) continue;
          groups.push([{ memory }, ...others]);
          for (const { id } of [memory, ...others.map((other) => other.memory)]) grouped.add(id);
        }
        show({ groups, looked: now.looked + next.length, rest: now.rest.slice(AT_ONCE) });
      }
    };
    goOn().catch((error) => show({ error }));
    return () => abort.abort();
  }, [asked]);
  return { ...walk, goOn: () => setAsked(asked + 1) };
}

/** What the browser remembers, until the tab is closed, of two memories that are not the same. */
const pairOf = (a: Memory, b: Memory): string => `omp-apart ${[a.id, b.id].sort().join(' ')}`;

function Groups({ user, least }: { user: string; least: number }) {
  const { features, verbs } = useSession().capabilities;
  const { groups, looked, rest, cursor, leftOut, error, goOn } = useGroups(user, least);
  const isLooking = error === undefined && (cursor === undefined || rest.length > 0);
  const only = features.supports_supersession
    ? !verbs.includes('update') && 'This gateway only reads, so nothing can be merged.'
    : 'This backend does not keep what replaces what, so nothing can be merged.';
  return (
    <div class="one">
      <Title
        text={`What says nearly the same about ${user}`}
        about="Current memories that a search takes for each other: the same fact in other words, what it was before, or two facts of the same form. You decide which are the same."
      />
      {only && <p>{only}</p>}
      <Missing from={leftOut} />
      <p role="status">
        {!isLooking && `${count(groups.length)} found among ${count(looked)} current memories, the newest first.`}
      </p>
      {isLooking && (
        <label>
          {count(looked)} of {count(looked + rest.length)} looked at
          <progress max={looked + rest.length || 1} value={looked} />
        </label>
      )}
      {error !== undefined && <Failure error={error} retry={goOn} />}
      {groups.map((group) => (
        <Same key={group[0].memory.id} group={group} isMerged={!only} />
      ))}
      {!isLooking && cursor && error === undefined && (
        <button type="button" onClick={goOn}>
          Look at older ones
        </button>
      )}
    </div>
  );
}

const nameOf = ({ content }: Memory): string => content.slice(0, 60);
const saidAt = ({ memory: { valid_from, created_at } }: Member): string => valid_from ?? created_at;

/** Memories that say nearly the same as the first, and which of them stays. */
function Same({ group, isMerged }: { group: Group; isMerged: boolean }) {
  const { client, capabilities } = useSession();
  const { etags, versions } = capabilities.features;
  const [members, setMembers] = useState<readonly Member[]>(group);
  const [apart, setApart] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState(group.reduce((a, b) => (saidAt(b) > saidAt(a) ? b : a)).memory.id);
  const [text, setText] = useState<string>();
  const [denied, setDenied] = useState<string>();
  const [merged, setMerged] = useState<Memory>();

  const same = members.map(({ memory }) => memory).filter(({ id }) => !apart.has(id));
  const kept = same.find(({ id }) => id === chosen) ?? (same[0] as Memory);
  const others = same.filter((memory) => memory !== kept);
  const { user_id: user } = kept;
  const choose = (id: string) => {
    setChosen(id);
    setText(undefined);
  };
  const setPair = (memory: Memory, isApart: boolean) => {
    const pair = pairOf(group[0].memory, memory);
    if (isApart) sessionStorage.setItem(pair, '1');
    else sessionStorage.removeItem(pair);
    setApart(new Set([...apart, memory.id].filter((id) => isApart || id !== memory.id)));
  };
  const merge = async () => {
    // The others change only by name: whoever changed one meanwhile must not lose what it says now.
    const now = etags ? await Promise.all(same.map(({ id }) => client.memories.get(id))) : same;
    if (now.some((memory, n) => version(memory) !== version(same[n] as Memory))) {
      setMembers(members.map((one) => ({ ...one, memory: now.find(({ id }) => id === one.memory.id) ?? one.memory })));
      throw new Error(
        'Somebody has changed one of them meanwhile, so nothing is merged. The page shows what they say now.',
      );
    }
    const supersedes = [...new Set([...(kept.supersedes ?? []), ...others.map(({ id }) => id)])];
    const patch = { supersedes, ...(text !== undefined && text !== kept.content && { content: text }) };
    try {
      setMerged(await client.memories.update(kept.id, patch, etags ? { ifMatch: version(kept) } : {}));
    } catch (error) {
      if (error instanceof ScopeDeniedError) setDenied(kept.id);
      throw error;
    }
  };
  if (merged)
    return (
      <p class="panel" tabIndex={-1} ref={(shown) => shown?.focus()}>
        Merged: <a href={href('memory', { id: merged.id, user })}>{nameOf(merged)}</a>
      </p>
    );
  return (
    <section class="panel" aria-label={nameOf(kept)}>
      <ul class="lines">
        {members.map(({ memory, score }) => (
          <li key={memory.id}>
            {!apart.has(memory.id) && (
              <>
                {isMerged && others.length > 0 && (
                  <label class="box">
                    <input
                      type="radio"
                      name={group[0].memory.id}
                      checked={memory === kept}
                      onChange={() => choose(memory.id)}
                      aria-label={`Stays: ${nameOf(memory)}`}
                    />
                    stays
                  </label>
                )}
                <Difference before={memory} after={kept} />
              </>
            )}
            <small>
              {apart.has(memory.id) && <span dir="auto">{nameOf(memory)}</span>}
              {score !== undefined && <b>{score.toFixed(2)}</b>}
              <a href={href('memory', { id: memory.id, user })}>
                <Time of={memory.created_at} />
              </a>
              <Chips memory={memory} to={(changed) => href('memories', { user, ...changed })} />
              <Written memory={memory} />
              {score !== undefined && (
                <button
                  type="button"
                  aria-pressed={apart.has(memory.id)}
                  aria-label={`Not the same: ${nameOf(memory)}`}
                  onClick={() => setPair(memory, !apart.has(memory.id))}
                >
                  Not the same
                </button>
              )}
            </small>
          </li>
        ))}
      </ul>
      {denied === kept.id && <p>The key of this tab may not change the one that stays.</p>}
      {isMerged && others.length > 0 && (
        <Confirmation
          id={`merge-${kept.id}`}
          button={`Merge ${count(same.length)}`}
          title={`Merge ${count(same.length)} memories?`}
          action="Merge"
          disabled={denied === kept.id}
          onConfirmed={merge}
        >
          <label>
            What stays
            <textarea
              rows={4}
              dir="auto"
              required
              value={text ?? kept.content}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
          <ul>
            <li>It replaces {others.length === 1 ? 'the other one' : `the ${count(others.length)} others`}.</li>
            <li>
              Nothing is deleted: its page shows what it replaced{versions && ', and restores the version before'}.
            </li>
          </ul>
        </Confirmation>
      )}
    </section>
  );
}
