import { Copyable } from './copyable.tsx';
import { count } from './format.tsx';
import { Icon, type IconName } from './icon.tsx';
import { href, useRoute } from './route.ts';
import { curl, GATEWAY, quoted, storedKey, useSession } from './session.ts';
import { Empty } from './ui.tsx';
import { useUsers } from './user-picker.tsx';

/** Of a page about one user, before one is chosen: the users there are. */
export function NoUser({ icon, title }: { icon: IconName; title: string }) {
  const { capabilities } = useSession();
  const { page } = useRoute();
  const { data } = useUsers('');
  const users = data?.items ?? [];
  return (
    <Empty icon={icon} title={title} isPage>
      <p>Type the id of a user above{users.length > 0 ? ', or choose one:' : '.'}</p>
      {data && users.length === 0 && (
        <p>
          There is nobody yet: the <a href={href('overview')}>overview</a> has three ways to add a first memory.
        </p>
      )}
      {!capabilities.features.users && <p>This backend cannot list its users.</p>}
      <div class="chips">
        {users.map(({ user_id: user, count: size }) => (
          <a key={user} class="chip" href={href(page, { user })} dir="auto">
            {user} <small>{count(size)}</small>
          </a>
        ))}
      </div>
      {data?.next_cursor && <a href={href('users')}>All users</a>}
    </Empty>
  );
}

/** The page of a key without a grant to read, such as one that only manages keys. */
export const NoReader = () => (
  <Empty icon="keys" title="This key reads no memories" isPage>
    <p>
      With the grant <code>admin:*</code> it <a href={href('keys')}>manages keys</a>. To read memories here, choose
      “Forget key” in the navigation and give a key that has a grant such as <code>read:*</code>.
    </p>
  </Empty>
);

/** Three ways to fill a store. */
export function FirstSteps({ user }: { user: string }) {
  const { capabilities } = useSession();
  const { page } = useRoute();
  if (!capabilities.verbs.includes('add')) return <p>This gateway only reads: another application fills its store.</p>;
  const isOpen = storedKey() === undefined;
  const header = isOpen ? '' : ' --header "Authorization: Bearer $KEY"';
  const environment = isOpen ? '' : 'OMP_KEY=$KEY ';
  const name = encodeURIComponent(user);
  const steps = [
    {
      icon: 'terminal',
      title: 'From your application',
      about: 'One request stores one fact. There are clients for TypeScript and Python too.',
      command: curl('POST', 'memories', { user_id: user, content: 'prefers tea to coffee' }),
    },
    {
      icon: 'bot',
      title: 'From an assistant',
      about: 'Any client of the Model Context Protocol can remember and recall. For Claude Code:',
      command: `claude mcp add --transport http memory ${GATEWAY}mcp/${name}${header}`,
    },
    {
      icon: 'rollback',
      title: 'From your own past',
      about: 'Your sessions with Claude Code, Codex or Gemini CLI become memories; secrets are masked.',
      command: `${environment}omp-gateway import --format claude-code --user ${quoted(user)} --to ${GATEWAY.slice(0, -1)}`,
    },
  ] as const;
  return (
    <>
      <p>
        Three ways to change that, or{' '}
        {page === 'memories' ? '“Add memory” above' : <a href={href('memories', { user })}>add one by hand</a>}.
      </p>
      <div class="steps">
        {steps.map(({ icon, title, about, command }) => (
          <section key={title} class="panel">
            <h3>
              <Icon name={icon} />
              {title}
            </h3>
            <p>{about}</p>
            <Copyable text={command} what={`the command: ${title}`} />
          </section>
        ))}
      </div>
    </>
  );
}
