export * from './adapter.ts';
export * from './collection.ts';
