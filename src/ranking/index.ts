export * from './analyse.ts';
export * from './scoring.ts';
export * from './thread.ts';
