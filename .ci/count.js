// Reads what vitest's JSON reporter wrote.
//   count.js FILE              prints "<passed> <failed>"; a test file that did not load counts as one failure
//   count.js --failed FILE     lists the tests that failed
//   count.js --skipped FILE…   counts the tests that ran in none of the runs, lists those that should have; status 1 if any
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** On a machine that has everything installed nothing here may be left out. Suites elsewhere skip what a backend lacks. */
const MUST_RUN = /^test\/(auth|chroma|console|containers|description|http|mcp|package|process|rate-limit)\//;

const [option, ...rest] = process.argv.slice(2);
if (option === '--skipped') skippedEverywhere(rest);
else if (option === '--failed') listFailed(rest[0]);
else count(option);

function read(path) {
  return JSON.parse(readFileSync(path, 'utf8')).testResults;
}

function count(path) {
  const files = read(path);
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  const having = (status) => tests.filter((test) => test.status === status).length;
  const notLoaded = files.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  for (const { name, message } of notLoaded) process.stderr.write(`${relative('.', name)}: ${message}\n`);
  process.stdout.write(`${having('passed')} ${having('failed') + notLoaded.length}\n`);
}

function listFailed(path) {
  for (const { name, assertionResults } of read(path)) {
    for (const { fullName, status } of assertionResults) {
      if (status === 'failed') process.stdout.write(`  ${relative('.', name)}: ${fullName}\n`);
    }
  }
}

function skippedEverywhere(paths) {
  const ran = new Map();
  for (const { name, assertionResults } of paths.flatMap(read)) {
    for (const { fullName, status } of assertionResults) {
      const test = `${relative('.', name)}: ${fullName}`;
      ran.set(test, ran.get(test) || status === 'passed' || status === 'failed');
    }
  }
  const skipped = [...ran].flatMap(([test, did]) => (did ? [] : [test]));
  const amiss = skipped.filter((test) => MUST_RUN.test(test));
  process.stdout.write(
    `${skipped.length} of ${ran.size} tests ran nowhere\n${amiss.map((test) => `${test}\n`).join('')}`,
  );
  process.exitCode = amiss.length === 0 ? 0 : 1;
}
