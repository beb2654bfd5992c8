import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/* Libraries of Java (17, with Maven), Go (1.24) and Rust (1.95). Packages are named as `library==version`, the library first. */

const java = (program: string, library: string, version: string, options = {}) => ({
  program,
  packages: [`${library}==${version}`, 'org.postgresql:postgresql==42.7.13', 'com.google.code.gson:gson==2.14.0'],
  options,
});
const springAi = (version: string) => java('SpringAi.java', 'org.springframework.ai:spring-ai-pgvector-store', version);
const langchain4j = (version: string, options = {}) =>
  java('Langchain4j.java', 'dev.langchain4j:langchain4j-pgvector', version, options);
const langchaingo = (version: string) => ({
  program: 'langchaingo.go',
  packages: [`github.com/tmc/langchaingo==${version}`, 'github.com/jackc/pgx/v5==v5.7.2'],
  options: {},
});

export const RUNS_OF_COMPILED = {
  'postgres-springai-java': springAi('2.0.1'),
  'postgres-springai-java-1.0': springAi('1.0.4'),
  'postgres-langchain4j-java': langchain4j('1.13.0-beta23'),
  'postgres-langchain4j-java-0.36': langchain4j('0.36.2'),
  'postgres-langchain4j-java-jsonb': langchain4j('1.13.0-beta23', { jsonb: true }),
  'postgres-langchain4j-java-columns': langchain4j('1.13.0-beta23', { columns: true }),
  'postgres-langchaingo-go': langchaingo('v0.1.14'),
  'postgres-langchaingo-go-0.1.7': langchaingo('v0.1.7'),
  'postgres-rig-rust': {
    program: 'rig.rs',
    packages: [
      'rig-postgres==0.44.0',
      'rig-core==0.44.0',
      'sqlx==0.9.0',
      'tokio==1.54.1',
      'serde==1.0.229',
      'serde_json==1.0.154',
    ],
    options: {},
  },
};

/** What of cargo's packages is needed besides their defaults. */
const FEATURES: Readonly<Record<string, string>> = {
  'rig-core': '"derive", "reqwest"',
  sqlx: '"runtime-tokio", "postgres", "uuid", "json"',
  tokio: '"macros", "rt-multi-thread"',
  serde: '"derive"',
};

/** Installs the packages into a folder, once, and returns what runs a program of `here` with them. */
export function installCompiled(here: string, program: string, packages: readonly string[], folder: string) {
  const run = (command: string, ...args: readonly string[]) =>
    execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'], cwd: folder });
  const pairs = packages.map((each) => each.split('==') as [string, string]);
  const write = (name: string, lines: readonly string[]) => writeFileSync(join(folder, name), `${lines.join('\n')}\n`);
  mkdirSync(folder, { recursive: true });
  if (program.endsWith('.java')) {
    const dependencies = pairs.map(([name, version]) => {
      const [group, artifact] = name.split(':');
      return `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`;
    });
    const own = '<groupId>x</groupId><artifactId>x</artifactId><version>1</version>';
    write('pom.xml', [
      `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>${own}<dependencies>`,
      ...dependencies,
      '</dependencies></project>',
    ]);
    const get = ['--quiet', '--batch-mode', 'dependency:copy-dependencies', '-DoutputDirectory=lib'];
    if (!existsSync(join(folder, 'lib'))) run('mvn', ...get);
    return { command: 'java', args: ['-cp', join(folder, 'lib/*'), join(here, program)] };
  }
  const binary = join(folder, 'program');
  if (program.endsWith('.go')) {
    write('go.mod', ['module x', 'go 1.24.4', ...pairs.map(([name, version]) => `require ${name} ${version}`)]);
    copyFileSync(join(here, program), join(folder, 'main.go'));
    run('go', 'mod', 'tidy');
    run('go', 'build', '-o', binary, '.');
  } else {
    const dependencies = pairs.map(
      ([name, version]) => `${name} = { version = "=${version}", features = [${FEATURES[name] ?? ''}] }`,
    );
    write('Cargo.toml', ['[package]', 'name = "x"', 'edition = "2024"', '[dependencies]', ...dependencies]);
    mkdirSync(join(folder, 'src'), { recursive: true });
    copyFileSync(join(here, program), join(folder, 'src/main.rs'));
    run('cargo', 'build', '--quiet');
    renameSync(join(folder, 'target/debug/x'), binary);
  }
  return { command: binary, args: [] };
}
