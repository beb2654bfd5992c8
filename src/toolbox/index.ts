export * from './async.ts';
export * from './records.ts';
export * from './scopes.ts';
