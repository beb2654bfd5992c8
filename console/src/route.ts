import { useLayoutEffect, useState } from 'preact/hooks';

/** What the address says, after `#`: that part never reaches a server or its log. */
export interface Route {
  readonly page: string;
  readonly parameters: Readonly<Record<string, string>>;
}

function read(): Route {
  const [page = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { page, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a page; parameters that are empty are left out. */
export function href(page: string, parameters: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return `#/${page}${given.length > 0 ? `?${new URLSearchParams(given)}` : ''}`;
}

export function go(page: string, parameters?: Readonly<Record<string, string | undefined>>): void {
  location.hash = href(page, parameters);
}

export function useRoute(): Route {
  const [route, setRoute] = useState(read);
  // At once: a change before the listener is there would be missed.
  useLayoutEffect(() => {
    const changed = () => setRoute(read());
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}
