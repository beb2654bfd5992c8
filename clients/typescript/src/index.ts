export * from './client.ts';
export * from './errors.ts';
export type { Answer, ApiPromise, CallOptions, ClientOptions } from './transport.ts';
export type * from './types.ts';
