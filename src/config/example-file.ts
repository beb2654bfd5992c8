import { stringify } from 'yaml';
import { explain, SETTINGS, type Setting } from './settings.ts';
import { wrap } from './wrap.ts';

const HEADER = `# Configuration of omp-gateway. Copy this file, change it, and start with
#   omp-gateway --config FILE
# The command line wins over the environment, the environment over this file.
# Every setting is here. A line that begins with #, without a space after it, is a
# setting that is off: its default, which applies only to some choice of another
# setting, or an example where there is no default.
# In a value, \${NAME} and \${NAME:-default} stand for environment variables and
# $$ for one $.`;

/** Text of `omp-gateway.example.yaml`. */
export function exampleFile(): string {
  const lines = [HEADER];
  const opened = new Set<string>();
  for (const setting of SETTINGS) {
    const [section = '', name] = setting.key.split('.');
    lines.push('');
    if (name === undefined) lines.push(...entry(setting, section, ''));
    else {
      if (!opened.has(section)) lines.push(`${section}:`);
      opened.add(section);
      lines.push(...entry(setting, name, '  '));
    }
  }
  return `${lines.join('\n')}\n`;
}

function entry(setting: Setting, name: string, indent: string): string[] {
  const comment = wrap(explain(setting), 78 - indent.length).map((line) => `${indent}# ${line}`);
  const off = setting.default === undefined || setting.only !== undefined;
  return [...comment, ...yaml(setting, name).map((line) => `${indent}${off ? '#' : ''}${line}`)];
}

/** On one line, but of a list of objects each on one of its own: a line that is off cannot begin with a space. */
function yaml({ type, default: value, example }: Setting, name: string): string[] {
  const shown = value ?? example;
  if (type === 'json') return [`${name}:`, ...(shown as unknown[]).map((item) => `- ${inline(item)}`)];
  return [type === 'list' ? `${name}: ${inline(shown)}` : stringify({ [name]: shown }).trimEnd()];
}

const inline = (value: unknown): string =>
  stringify(value, { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: false }).trimEnd();
