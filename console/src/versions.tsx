import { useRef, useState } from 'preact/hooks';
import {
  version as etag,
  type Memory,
  type MemoryVersion,
  PreconditionFailedError,
} from '../../clients/typescript/src/index.ts';
import { Confirmation } from './confirmation.tsx';
import { Difference } from './difference.tsx';
import { Marks, Time, Written } from './format.tsx';
import { Failure, useLoad } from './load.tsx';
import { useSession } from './session.ts';

const PAGE = 20;

/** What changed: the versions of a memory, newest first. An earlier one can be restored, which makes a new one. */
export function Versions({ memory, onChanged }: { memory: Memory; onChanged: () => void }) {
  const { client, capabilities } = useSession();
  const heading = useRef<HTMLHeadingElement>(null);
  const [said, setSaid] = useState('');
  const [changes, setChanges] = useState(0);
  const [error, setError] = useState<unknown>();
  const [conflict, setConflict] = useState<{ readonly number: number; readonly theirs: Memory }>();
  const { id } = memory;

  /** Shows what has happened. The button that did it may be no more. */
  const changed = (sentence: string) => {
    setSaid(sentence);
    setChanges(changes + 1);
    setConflict(undefined);
    heading.current?.focus();
    onChanged();
  };
  const restore = async (number: number, onto: Memory) => {
    setError(undefined);
    try {
      await client.memories.restore(id, number, capabilities.features.etags ? { ifMatch: etag(onto) } : {});
      changed(`Version ${number} is restored, as a new version.`);
    } catch (cause) {
      const isStale = cause instanceof PreconditionFailedError;
      const theirs = isStale ? await client.memories.get(id).catch(() => undefined) : undefined;
      if (theirs) setConflict({ number, theirs });
      else setError(cause);
    }
  };
  return (
    <section aria-labelledby="what-changed">
      <h2 id="what-changed" ref={heading} tabIndex={-1}>
        What changed
      </h2>
      <p role="status">{said}</p>
      {conflict && (
        <div class="conflict" role="alert">
          <p>Somebody has changed this memory since you opened it, so nothing is restored. It says now:</p>
          <blockquote dir="auto">{conflict.theirs.content}</blockquote>
          <button type="button" onClick={() => restore(conflict.number, conflict.theirs)}>
            Restore version {conflict.number} over it
          </button>{' '}
          <button type="button" onClick={() => changed('')}>
            Leave it
          </button>
        </div>
      )}
      {error !== undefined && <Failure error={error} />}
      <VersionList
        key={`${memory.updated_at} ${changes}`}
        memory={memory}
        onRestore={capabilities.verbs.includes('update') && !conflict ? (number) => restore(number, memory) : undefined}
        onRemoved={(purged) => changed(purged === 1 ? 'One version is removed.' : `${purged} versions are removed.`)}
      />
    </section>
  );
}

interface VersionListProps {
  readonly memory: Memory;
  /** Undefined: nothing can be restored. */
  readonly onRestore: ((number: number) => void) | undefined;
  readonly onRemoved: (purged: number) => void;
}

function VersionList({ memory: { id }, onRestore, onRemoved }: VersionListProps) {
  const { client, capabilities } = useSession();
  const [versions, setVersions] = useState<readonly MemoryVersion[]>([]);
  const [cursor, setCursor] = useState<string>();
  const { data, error, reload } = useLoad(cursor ?? '', async (signal) => {
    const page = await client.memories.versions(id, { limit: PAGE, cursor }, { signal }).page();
    setVersions((before) => [...before, ...page.items]);
    return page;
  });
  const isOnly = versions.length === 1 && data?.next_cursor === null;
  return (
    <>
      {error !== undefined && <Failure error={error} retry={reload} />}
      {isOnly ? (
        <p>{versions[0]?.version === 1 ? 'Nothing since it was added.' : 'No earlier version is kept.'}</p>
      ) : (
        <ol class="versions">
          {versions.map((version, n) => (
            <Version
              key={version.version}
              version={version}
              before={versions[n + 1]}
              isLast={n === versions.length - 1 && data?.next_cursor === null}
              onRestore={onRestore}
            />
          ))}
        </ol>
      )}
      {data?.next_cursor && (
        <button type="button" onClick={() => setCursor(data.next_cursor ?? undefined)}>
          Earlier versions
        </button>
      )}
      {versions.length > 1 && capabilities.verbs.includes('delete') && <RemoveVersions id={id} onRemoved={onRemoved} />}
    </>
  );
}

interface VersionProps {
  readonly version: MemoryVersion;
  readonly before: MemoryVersion | undefined;
  readonly isLast: boolean;
  readonly onRestore: ((number: number) => void) | undefined;
}

function Version({ version: { version, memory, current }, before, isLast, onRestore }: VersionProps) {
  const previous = before?.version === version - 1 ? before.memory : undefined;
  return (
    <li>
      <p>
        <b>Version {version}</b> {current && <span class="mark good">current</span>} <Time of={memory.updated_at} />{' '}
        <Written memory={memory} /> <Marks memory={memory} />
        {!current && onRestore && (
          <button type="button" onClick={() => onRestore(version)} aria-label={`Restore version ${version}`}>
            Restore
          </button>
        )}
      </p>
      <Difference before={previous ?? memory} after={memory} />
      {!previous && (before || isLast) && version > 1 && <small>The version before this one is not kept.</small>}
    </li>
  );
}

function RemoveVersions({ id, onRemoved }: { id: string; onRemoved: (purged: number) => void }) {
  const { client } = useSession();
  return (
    <Confirmation
      id="remove-versions"
      button="Remove earlier versions"
      title="Remove the earlier versions of this memory?"
      action="Remove"
      onConfirmed={async () => onRemoved((await client.memories.purgeVersions(id)).purged)}
    >
      <ul>
        <li>All versions before the current one are deleted at once, such as a secret that was overwritten.</li>
        <li>There is no way back: they cannot be read or restored, and a rollback cannot return to them.</li>
        <li>
          The memory stays as it is. The audit log records who asked for it. Exports and backups keep what they have.
        </li>
      </ul>
    </Confirmation>
  );
}
