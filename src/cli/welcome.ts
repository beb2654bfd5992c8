import { resolve } from 'node:path';
import type { Config } from '../config/settings.ts';
import { userName } from './user-name.ts';

interface Started {
  readonly version: string;
  /** Without a slash at its end. */
  readonly url: string;
  readonly open: boolean;
  readonly provider: string;
}

/** What a person wants to know once the gateway has started: at most 10 lines, ends with a newline. */
export function welcomeText({ version, url, open, provider }: Started, config: Config): string {
  const data =
    provider === 'postgres' && config.postgres.url === undefined ? resolve(config.data_dir) : `in ${provider}`;
  const user = open ? `/${encodeURIComponent(userName() ?? 'USER')}` : ' --header "Authorization: Bearer $OMP_KEY"';
  const rows = [
    ['Address', url],
    ...(config.console === 'on' ? [['Console', `${url}/console/`]] : []),
    ['Docs', `${url}/docs to try every call; the pages are in docs/`],
    ['Data', data],
    ['Access', open ? OPEN : 'closed: a key is needed'],
    ...(config.mcp.enabled === 'on' ? [['MCP', `claude mcp add --transport http memory ${url}/mcp${user}`]] : []),
    ['Stop', 'Ctrl-C'],
  ];
  return `\n  omp-gateway ${version}\n\n${rows.map(([name = '', text]) => `  ${name.padEnd(9)}${text}\n`).join('')}\n`;
}

const OPEN = `open: no key is needed; "omp-gateway keys create NAME --grant '*:*'" closes it`;
