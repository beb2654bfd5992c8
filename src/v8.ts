import { setFlagsFromString } from 'node:v8';

/*
 * After a burst V8 allocates the objects of requests in its old generation ("pretenuring"). They die young all the same, and keep
 * everything they refer to until the next full collection. Without pretenuring a list takes 30 % less processor time, a search 13 %
 * (docs/benchmarks.md). Node prints an error for a flag that it does not know; 20, 22 and 24 know this one.
 */
setFlagsFromString('--no-allocation-site-pretenuring');
