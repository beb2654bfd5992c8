export * from './async.ts';
export * from './json-bounds.ts';
export * from './mem0-scope.ts';
export * from './new-record.ts';
export * from './order.ts';
export * from './record-patch.ts';
export * from './record-size.ts';
export * from './scope-glob.ts';
