import { useState } from 'preact/hooks';
import type { CreatedKey } from '../../clients/typescript/src/index.ts';
import { Failure } from './load.tsx';
import { useSession } from './session.ts';

const ACTIONS = ['read', 'write', 'delete'] as const;
type Action = (typeof ACTIONS)[number];

/** What may be done in the scopes that a glob covers. */
interface Line {
  readonly actions: readonly Action[];
  readonly scope: string;
}
const FIRST: Line = { actions: ['read'], scope: '*' };

/** `<action>:<scope glob>`, as the gateway's Decision 14 says; all three actions are `*`. */
const grantsOf = (lines: readonly Line[], admin: boolean): string[] => {
  const grants = lines.flatMap(({ actions, scope }) => {
    if (scope === '') return [];
    return actions.length === ACTIONS.length ? [`*:${scope}`] : actions.map((action) => `${action}:${scope}`);
  });
  return [...new Set([...grants, ...(admin ? ['admin:*'] : [])])];
};

const DAY_MS = 86_400_000;
const dayIn = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);

export const textIn = (form: FormData, name: string): string => String(form.get(name) ?? '');

/** Of a key or a webhook. */
export const UsersField = () => (
  <label>
    Users, one on each line; empty: all
    <textarea name="users" rows={1} spellcheck={false} />
  </label>
);

/** What `UsersField` has in a form; null: all. */
export function usersIn(form: FormData): string[] | null {
  const users = textIn(form, 'users')
    .split('\n')
    .filter((user) => user.trim() !== '');
  return users.length > 0 ? users : null;
}

/** Makes a key. Its grants come from boxes, and their text is shown as it changes. */
export function KeyForm({ onCreated }: { onCreated: (key: CreatedKey) => void }) {
  const { client } = useSession();
  const [lines, setLines] = useState<readonly Line[]>([FIRST]);
  const [admin, setAdmin] = useState(false);
  const [error, setError] = useState<unknown>();
  const [saving, setSaving] = useState(false);
  const grants = grantsOf(lines, admin);
  const change = (place: number, to: Partial<Line>) =>
    setLines(lines.map((line, index) => (index === place ? { ...line, ...to } : line)));
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    setSaving(true);
    setError(undefined);
    try {
      const expires_at = textIn(given, 'expires_at') || null;
      onCreated(
        await client.keys.create({
          name: textIn(given, 'name').trim(),
          grants,
          users: usersIn(given),
          expires_at,
          untrusted: given.has('untrusted'),
        }),
      );
    } catch (cause) {
      setError(cause);
      setSaving(false);
    }
  };
  return (
    <form class="panel" onSubmit={submit} aria-labelledby="new-key">
      <h2 id="new-key">New key</h2>
      <div class="fields">
        <label>
          Name
          <input name="name" required maxLength={100} autocomplete="off" placeholder="what uses it" />
        </label>
        <label>
          Expires at 00:00 UTC on; empty: never
          <input type="date" name="expires_at" min={dayIn(1)} defaultValue={dayIn(90)} />
        </label>
        <UsersField />
      </div>
      {lines.map((line, place) => (
        <fieldset key={place} class="fields">
          <legend>{place === 0 ? 'May' : 'And'}</legend>
          {ACTIONS.map((action) => (
            <label key={action} class="box">
              <input
                type="checkbox"
                checked={line.actions.includes(action)}
                onChange={({ currentTarget: { checked } }) =>
                  change(place, {
                    actions: ACTIONS.filter((one) => (one === action ? checked : line.actions.includes(one))),
                  })
                }
              />
              {action}
            </label>
          ))}
          <label>
            in the scopes
            <input
              value={line.scope}
              onInput={({ currentTarget }) => change(place, { scope: currentTarget.value })}
              spellcheck={false}
              placeholder="coding/*"
              required
              maxLength={512}
            />
          </label>
          {place > 0 && (
            <button
              type="button"
              aria-label={`Remove line ${place + 1}`}
              onClick={() => setLines(lines.filter((_, index) => index !== place))}
            >
              Remove
            </button>
          )}
        </fieldset>
      ))}
      <p>
        <button type="button" onClick={() => setLines([...lines, { actions: ['read'], scope: '' }])}>
          Other scopes
        </button>{' '}
        <small>
          <code>*</code> is every scope, and memories without one; <code>coding/*</code> all below <code>coding</code>.
        </small>
      </p>
      <label class="box">
        <input type="checkbox" checked={admin} onChange={({ currentTarget }) => setAdmin(currentTarget.checked)} />
        manage keys: make any key, also one that may do everything
      </label>
      <label class="box">
        <input type="checkbox" name="untrusted" />
        untrusted, for what reads web pages or mail: what it writes is marked and left out for models, and it cannot
        change what others wrote
      </label>
      <p>
        Grants: <output aria-label="Grants">{grants.length > 0 ? grants.join('  ') : 'none'}</output>
      </p>
      {error !== undefined && <Failure error={error} />}
      <button type="submit" class="main" disabled={saving || grants.length === 0}>
        Create key
      </button>
    </form>
  );
}
