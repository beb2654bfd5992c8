export * from './adapter.ts';
export * from './collection.ts';
export { collectionMethods, defineCollection } from './define-collection.ts';
export { examineMapped, mappedMethods } from './mapped.ts';
export type { ForeignCollection } from './mapped-view.ts';
