export * from './adapter.ts';
export * from './collection.ts';
export { defineCollection } from './define-collection.ts';
