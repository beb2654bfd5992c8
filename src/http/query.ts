import { invalidRequest } from '#contract';

/**
 * The query string as single values. Unknown names are the schema's business (ignored); a name given twice is refused,
 * since picking one of the two would silently drop a filter.
 */
export function readQuery(url: string): Record<string, string> {
  const start = url.indexOf('?');
  if (start < 0) return {};
  const end = url.indexOf('#', start);
  const values: Record<string, string> = Object.create(null);
  for (const pair of url.slice(start + 1, end < 0 ? undefined : end).split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    if (name in values) throw invalidRequest(`${name}: given more than once`);
    values[name] = equals < 0 ? '' : decode(pair.slice(equals + 1));
  }
  return values;
}

function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw invalidRequest('query string: malformed percent-encoding');
  }
}
