import { useState } from 'preact/hooks';
import {
  type Memory,
  type MemoryPatch,
  type NewMemory,
  PreconditionFailedError,
  version,
} from '../../clients/typescript/src/index.ts';
import { Failure } from './load.tsx';
import { useSession } from './session.ts';
import { focus } from './ui.tsx';

interface Fields {
  readonly content: string;
  readonly scope: string;
  readonly tags: string;
  readonly validTo: string;
}

const fieldsOf = (memory?: Memory): Fields => ({
  content: memory?.content ?? '',
  scope: memory?.scope ?? '',
  tags: memory?.tags?.join(', ') ?? '',
  validTo: memory?.valid_to ?? '',
});

const tagsOf = (text: string): string[] =>
  text
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '');

/** The patch has only fields that differ, so that a concurrent change of another field stays. */
function patchOf(before: Fields, after: Fields): MemoryPatch {
  return {
    ...(after.content !== before.content && { content: after.content }),
    ...(after.scope !== before.scope && { scope: after.scope }),
    ...(after.tags !== before.tags && { tags: tagsOf(after.tags) }),
    ...(after.validTo !== before.validTo && { valid_to: after.validTo || null }),
  };
}

interface FormProps {
  readonly user: string;
  /** Undefined: adds one. */
  readonly memory?: Memory | undefined;
  readonly scope?: string | undefined;
  readonly onSaved: (memory: Memory) => void;
  readonly onCancel: () => void;
}

/** Adds or changes a memory. If somebody else has changed it meanwhile, both texts are shown, and nothing is lost. */
export function MemoryForm({ user, memory, scope = '', onSaved, onCancel }: FormProps) {
  const { client, capabilities } = useSession();
  const [base, setBase] = useState(memory);
  const [fields, setFields] = useState<Fields>(() => ({ ...fieldsOf(memory), ...(memory ? {} : { scope }) }));
  const [theirs, setTheirs] = useState<Memory>();
  const [error, setError] = useState<unknown>();
  const [saving, setSaving] = useState(false);

  const save = async (onto: Memory | undefined) => {
    setSaving(true);
    setError(undefined);
    try {
      const saved = onto ? await change(onto) : await client.memories.add(newMemory());
      onSaved(saved);
    } catch (cause) {
      if (cause instanceof PreconditionFailedError && onto)
        setTheirs(await client.memories.get(onto.id).catch(() => undefined));
      setError(cause);
    } finally {
      setSaving(false);
    }
  };
  const change = (onto: Memory) => {
    const patch = patchOf(fieldsOf(base), fields);
    if (Object.keys(patch).length === 0) return onto;
    return client.memories.update(onto.id, patch, capabilities.features.etags ? { ifMatch: version(onto) } : {});
  };
  const newMemory = (): NewMemory => ({
    user_id: user,
    content: fields.content,
    scope: fields.scope || null,
    tags: tagsOf(fields.tags),
    valid_to: fields.validTo || null,
    source: { app: 'console', type: 'explicit' },
  });
  const field = (name: keyof Fields) => ({
    value: fields[name],
    onInput: (event: Event) => setFields({ ...fields, [name]: (event.currentTarget as HTMLInputElement).value }),
  });
  const cancelOnEscape = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === 'Escape') onCancel();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    void save(base);
  };

  return (
    <form class="panel" onSubmit={submit} onKeyDown={cancelOnEscape}>
      <label>
        Text
        <textarea
          {...field('content')}
          rows={3}
          dir="auto"
          required
          ref={focus}
          maxLength={capabilities.features.max_content_length ?? undefined}
        />
      </label>
      <div class="fields">
        {capabilities.features.scopes !== 'none' && (
          <label>
            Scope
            <input {...field('scope')} placeholder="work/projects" />
          </label>
        )}
        {capabilities.features.tags !== false && (
          <label>
            Tags
            <input {...field('tags')} placeholder="separated by commas" />
          </label>
        )}
        <label>
          Valid until
          <input {...field('validTo')} placeholder="2027-01-31" />
        </label>
      </div>
      {theirs && (
        <div class="conflict" role="alert">
          <p>Somebody has changed this memory since you opened it. It says now:</p>
          <blockquote dir="auto">{theirs.content}</blockquote>
          <button type="button" onClick={() => save(theirs)}>
            Save mine over it
          </button>
          <button
            type="button"
            onClick={() => {
              setBase(theirs);
              setFields(fieldsOf(theirs));
              setTheirs(undefined);
              setError(undefined);
            }}
          >
            Take theirs
          </button>
        </div>
      )}
      {error !== undefined && !theirs && <Failure error={error} />}
      <div class="actions">
        <button type="submit" class="main" disabled={saving || theirs !== undefined}>
          {memory ? 'Save' : 'Add'}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}
