import { loadConfig, type Sources } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/mistakes.ts';

export interface Written {
  readonly flags?: Sources['flags'];
  readonly env?: Record<string, string>;
  /** Text of `gateway.yaml`, named by OMP_CONFIG. */
  readonly yaml?: string;
  /** Further files by path; every other path is missing. */
  readonly files?: Record<string, string>;
}

/** Files are given as text: what is read is a path's content, whichever disk it lies on. */
export function load({ flags = {}, env = {}, yaml, files = {} }: Written) {
  const all = new Map(Object.entries(yaml === undefined ? files : { ...files, 'gateway.yaml': yaml }));
  const named = yaml === undefined ? env : { OMP_CONFIG: 'gateway.yaml', ...env };
  const readFile = (path: string): string => {
    const text = all.get(path);
    if (text === undefined) throw Object.assign(new Error('missing'), { code: 'ENOENT' });
    return text;
  };
  return loadConfig({ flags, env: named, readFile });
}

/** The mistakes that loading reports; none when it succeeds. */
export function mistakesOf(written: Written): readonly string[] {
  try {
    load(written);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes;
    throw error;
  }
}
