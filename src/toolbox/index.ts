export * from './async.ts';
export * from './changes.ts';
export * from './embedding-usage.ts';
export * from './erased.ts';
export * from './numbers.ts';
export * from './records.ts';
export * from './scopes.ts';
export * from './thread.ts';
