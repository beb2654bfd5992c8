export * from './define.ts';
export * from './embedder.ts';
export * from './errors.ts';
export * from './identity.ts';
export * from './patch.ts';
export * from './provider.ts';
export * from './record.ts';
export * from './scope.ts';
