export * from './async.ts';
export * from './json-bounds.ts';
export * from './records.ts';
export * from './scopes.ts';
