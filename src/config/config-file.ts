import { LineCounter, parseDocument, visit } from 'yaml';
import { didYouMean, type Input, type Reading, reasonOf } from './mistakes.ts';
import { BY_KEY, coerce, SECTIONS, SETTINGS, type Setting } from './schema-reader.ts';

/**
 * The settings that a YAML file gives. If the file cannot be read, every setting counts as given but unknown: nothing can be
 * concluded from its absence.
 */
export function fromFile(path: string, reading: Reading): Map<string, Input> {
  const document = parse(path, reading);
  const inputs = new Map<string, Input>();
  if (document === undefined) {
    for (const { key } of SETTINGS)
      inputs.set(key, { value: undefined, name: path, written: undefined, origin: 'file' });
  } else {
    collect(document, '', { ...reading, path, inputs, known: BY_KEY });
  }
  return inputs;
}

/** The document; undefined: its mistakes are reported. */
function parse(path: string, { readFile, mistakes }: Reading): unknown {
  let source: string;
  try {
    source = readFile(path);
  } catch (error) {
    mistakes.push(`${path} cannot be read: ${reasonOf(error)}`);
    return;
  }
  return parseYaml(source, path, mistakes);
}

/** What a text in YAML or JSON holds; undefined: its mistakes are added. They never quote it, since it may hold secrets. */
export function parseYaml(source: string, path: string, mistakes: string[]): unknown {
  const lineCounter = new LineCounter();
  const document = parseDocument(source, { lineCounter, prettyErrors: false });
  const problems = [...document.errors, ...document.warnings];
  for (const { message, pos } of problems) {
    const { line, col } = lineCounter.linePos(pos[0]);
    // What follows the colon is an excerpt.
    mistakes.push(`${path}, line ${line}, column ${col}: not valid YAML: ${message.replace(/: .*/s, '')}`);
  }
  if (problems.length > 0) return;
  try {
    return document.toJS() ?? {};
  } catch {
    let reason = 'its aliases (*name) stand for too much, or for themselves; write the values out';
    visit(document, {
      Alias(_, alias) {
        if (alias.resolve(document)) return;
        reason = 'an alias (*name) has no anchor; put quotes around text that begins with *';
        return visit.BREAK;
      },
    });
    mistakes.push(`${path}: not valid YAML: ${reason}`);
  }
}

interface FileReading extends Reading {
  /** Undefined: the reader of the mistakes adds it. */
  readonly path?: string;
  readonly inputs: Map<string, Input>;
  /** The settings that may be there. */
  readonly known: ReadonlyMap<string, Setting>;
}

/** Adds the settings that a node gives. */
export function collect(node: unknown, section: string, reading: FileReading): void {
  const { path, mistakes, known } = reading;
  // A section whose settings are all commented out is null. It counts as unset, like a setting without a value.
  if (node === null) return;
  if (typeof node !== 'object' || Array.isArray(node)) {
    mistakes.push(
      `${section === '' ? (path ?? 'it') : nameOf(section, path)} must hold settings, each as "name: value"`,
    );
    return;
  }
  for (const [name, value] of Object.entries(node)) {
    const key = section === '' ? name : `${section}.${name}`;
    const setting = name.includes('.') ? undefined : known.get(key);
    if (setting !== undefined) take(setting, value, reading);
    else if (section === '' && hasSection(known, name)) collect(value, name, reading);
    else if (!name.includes('.') && (BY_KEY.has(key) || SECTIONS.has(key)))
      mistakes.push(`${key} belongs to the gateway: set it outside stores`);
    else mistakes.push(`${nameOf(key, path)} is not a setting${didYouMean(key, spellings(known))}`);
  }
}

const nameOf = (key: string, path: string | undefined): string => (path === undefined ? key : `${key} in ${path}`);

const hasSection = (known: FileReading['known'], name: string): boolean =>
  SECTIONS.has(name) && [...known.keys()].some((key) => key.startsWith(`${name}.`));

/** A setting is also found by its last name alone, as when the section is missing. */
const spellings = (known: FileReading['known']) =>
  [...known.keys()].flatMap((key) => {
    const [section = '', name] = key.split('.');
    return name === undefined
      ? [[key, key] as const]
      : ([
          [section, section],
          [key, key],
          [name, key],
        ] as const);
  });

function take(setting: Setting, written: unknown, reading: FileReading): void {
  const { path, mistakes, inputs } = reading;
  if (written === null) return;
  const name = nameOf(setting.key, path);
  // Each store resolves its own.
  if (setting.type === 'object') {
    inputs.set(setting.key, { value: written, name, written, origin: 'file' });
    return;
  }
  const problems: string[] = [];
  const resolved = resolve(written, reading, problems);
  mistakes.push(...problems.map((problem) => `${name}: ${problem}`));
  const isReference = typeof written === 'string' && written.includes('$');
  // A reference with an empty default leaves the setting unset.
  if (isReference && resolved === '' && problems.length === 0) return;
  const value = isReference ? coerce(setting.type, resolved as string) : resolved;
  inputs.set(setting.key, { value: problems.length === 0 ? value : undefined, name, written, origin: 'file' });
}

/** A value with all its references resolved. */
function resolve(written: unknown, reading: Reading, problems: string[]): unknown {
  if (typeof written === 'string') {
    const { text, problems: found } = resolveReferences(written, reading);
    problems.push(...found);
    return text;
  }
  if (typeof written !== 'object' || written === null) return written;
  const inner = (value: unknown) => resolve(value, reading, problems);
  if (Array.isArray(written)) return written.map(inner);
  return Object.fromEntries(Object.entries(written).map(([name, value]) => [name, inner(value)]));
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: shown to the reader
const SYNTAX = 'a reference is ${NAME} or ${NAME:-default}, a plain ${ is written $${';
const TOKEN = /\$\$|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?/g;

/**
 * Replaces `${NAME}` and `${NAME:-default}` by environment variables and `$$` by `$`; any other `$` stays. An empty
 * variable counts as unset. Adds one entry to `problems` for each unresolved reference, and each name to `referenced`.
 */
export function resolveReferences(
  text: string,
  { env, referenced }: Pick<Reading, 'env' | 'referenced'>,
): { text: string; problems: string[] } {
  const problems: string[] = [];
  const resolved = text.replace(TOKEN, (token, name?: string, fallback?: string) => {
    if (token === '$$') return '$';
    if (name !== undefined) referenced.add(name);
    if (name === undefined) problems.push(SYNTAX);
    else if (!env[name] && fallback === undefined) problems.push(`the environment variable ${name} is not set`);
    return (name && env[name]) || (fallback ?? '');
  });
  return { text: resolved, problems };
}
