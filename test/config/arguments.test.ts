import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseArguments } from '../../src/cli/arguments.ts';
import { version } from '../../src/package.ts';
import { load } from './sources.ts';

describe('the command line', () => {
  it.each([
    { argv: [], flags: {} },
    { argv: ['serve'], flags: {} },
    { argv: ['--port', '1', '--data-dir=d', 'serve'], flags: { port: '1', 'data-dir': 'd' } },
    { argv: ['--port', '1', '--port', '2'], flags: { port: '2' } },
    {
      argv: ['--config', 'f', '--host', '::', '--provider', 'memory'],
      flags: { config: 'f', host: '::', provider: 'memory' },
    },
  ])('$argv serves', ({ argv, flags }) => {
    expect(parseArguments(argv)).toEqual({ action: 'serve', flags });
  });

  it.each([
    [['-h'], 'help'],
    [['serve', '--help', '--port', 'x'], 'help'],
    [['-v'], 'version'],
    [['--version'], 'version'],
  ])('%j asks for %s', (argv, action) => {
    expect(parseArguments(argv)).toEqual({ action });
  });

  it.each([[['keys']], [['keys', 'create', 'laptop', '--grant', 'read:*']], [['keys', '--prot']]])(
    '%j is for the keys command, whatever follows',
    (argv) => {
      expect(parseArguments(argv)).toEqual({ action: 'command', name: 'keys', argv: argv.slice(1) });
    },
  );

  it.each([
    [['--config', 'f', 'keys', 'list'], "'keys' must be the first argument"],
    [['--prot', '1'], "Unknown option '--prot'; did you mean --port?"],
    [['--verbose-logging'], "Unknown option '--verbose-logging'"],
    [['-x'], "Unknown option '-x'"],
    [['--port'], "Option '--port <value>' argument missing"],
    [['--help=yes'], "Option '-h, --help' does not take an argument"],
    [['start'], "Unknown command 'start'"],
    [['serve', 'now'], "Unexpected argument 'now'"],
  ])('%j is a mistake', (argv, problem) => {
    expect(parseArguments(argv)).toEqual({
      action: 'mistake',
      message: `${problem}\nTry 'omp-gateway --help'.`,
      status: 2,
    });
  });

  it('gives flags that the configuration takes', () => {
    const parsed = parseArguments('--port 1 --data-dir d --log-level warn --host h --provider memory'.split(' '));
    const { config } = load({ flags: parsed.action === 'serve' ? parsed.flags : {} });
    expect(config).toMatchObject({ port: 1, data_dir: 'd', log_level: 'warn', host: 'h', provider: 'memory' });
  });
});

it('the version is that of the package', () => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  expect(version()).toBe((JSON.parse(text) as { version: string }).version);
});
