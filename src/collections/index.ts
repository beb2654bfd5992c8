export * from './adapter.ts';
export * from './collection.ts';
export { collectionMethods, defineCollection } from './define-collection.ts';
