import { ScopeDeniedError } from '../../clients/typescript/src/index.ts';
import { count } from './format.tsx';
import { Failure, useLoad } from './load.tsx';
import { href } from './route.ts';
import { curl, GATEWAY, storedKey, useSession } from './session.ts';

/** Users that are offered. */
const OFFERED = 12;
/** The user of the examples. */
const EXAMPLE = 'ana';

/** The page before a user is chosen: the users, or how to add the first one. */
export function Start() {
  const { client, capabilities } = useSession();
  const { data, error, reload } = useLoad(capabilities.features.users ? '' : undefined, (signal) =>
    client.users.list({ limit: OFFERED }, { signal }).page(),
  );
  const users = data?.items ?? [];
  if (error instanceof ScopeDeniedError) return <NoReader />;
  if (data && users.length === 0) {
    return (
      <div class="empty">
        <h1>Nothing is remembered yet</h1>
        <FirstSteps user={EXAMPLE} />
      </div>
    );
  }
  return (
    <div class="empty">
      <h1>Whose memories?</h1>
      <p>Type the id of a user above{users.length > 0 ? ', or choose one:' : '.'}</p>
      {error !== undefined && <Failure error={error} retry={reload} />}
      {!capabilities.features.users && <p>This backend cannot list its users.</p>}
      <ul>
        {users.map(({ user_id, count: size }) => (
          <li key={user_id}>
            <a href={href('memories', { user: user_id })} dir="auto">
              {user_id}
            </a>{' '}
            {count(size)}
          </li>
        ))}
      </ul>
      {data?.next_cursor && <a href={href('users')}>All users</a>}
    </div>
  );
}

/** The page of a key without a grant to read, such as one that only manages keys. */
const NoReader = () => (
  <div class="empty">
    <h1>This key reads no memories</h1>
    <p>
      With the grant <code>admin:*</code> it <a href={href('keys')}>manages keys</a>. To read memories here, choose
      “Forget key” above and give a key that has a grant such as <code>read:*</code>.
    </p>
  </div>
);

/** Three ways to fill a store. */
export function FirstSteps({ user }: { user: string }) {
  const { capabilities } = useSession();
  if (!capabilities.verbs.includes('add')) return <p>This gateway only reads: another application fills its store.</p>;
  const header = storedKey() === undefined ? '' : ' --header "Authorization: Bearer $KEY"';
  return (
    <>
      <p>Three ways to change that.</p>
      <h2>By hand</h2>
      <p>
        <a href={href('memories', { user })}>Open {user}</a> and press Add.
      </p>
      <h2>From your application</h2>
      <pre>{curl('POST', 'memories', { user_id: user, content: 'prefers tea to coffee' })}</pre>
      <h2>From an assistant</h2>
      <p>Any client of the Model Context Protocol can remember and recall. For Claude Code:</p>
      <pre>{`claude mcp add --transport http memory ${GATEWAY}mcp/${encodeURIComponent(user)}${header}`}</pre>
    </>
  );
}
