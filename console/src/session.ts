import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { type Capabilities, MemoryClient } from '../../clients/typescript/src/index.ts';

/** The gateway, as the key of this tab may use it. */
export interface Session {
  readonly client: MemoryClient;
  readonly capabilities: Capabilities;
  /** Asked again and again. Undefined: not known yet. */
  readonly works: boolean | undefined;
  /** Why it does not work. */
  readonly trouble: unknown;
}

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('a page outside of the session');
  return session;
}

/** The gateway serves the console one level below itself. */
export const GATEWAY = new URL('..', location.href).href;

const KEY = 'omp-key';
/** The browser keeps the session until the tab is closed. */
export const storedKey = (): string | undefined => sessionStorage.getItem(KEY) ?? undefined;
export const storeKey = (key: string): void => sessionStorage.setItem(KEY, key);
export const forgetKey = (): void => sessionStorage.clear();

/** `onUnauthorized` is called when the gateway accepts no request without another key. */
export const createClient = (onUnauthorized: () => void): MemoryClient =>
  new MemoryClient({
    url: GATEWAY,
    key: storedKey(),
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (response.status === 401) onUnauthorized();
      return response;
    },
  });

/** A text as one word of a shell. */
export const quoted = (text: string): string => (/^[\w.@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** A request for the command line, which does what a page cannot do yet. */
export const curl = (method: string, path: string, body: object): string =>
  [
    `curl -X ${method} ${GATEWAY}${path}`,
    ...(storedKey() === undefined ? [] : ['-H "Authorization: Bearer $KEY"']),
    "-H 'Content-Type: application/json'",
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(' \\\n  ');
