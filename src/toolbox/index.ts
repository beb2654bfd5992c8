export * from './keyed-mutex.ts';
export * from './new-record.ts';
export * from './read-at-most.ts';
export * from './record-patch.ts';
export * from './record-size.ts';
export * from './scope-glob.ts';
export * from './unless-aborted.ts';
