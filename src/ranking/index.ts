export * from './analyse.ts';
export * from './half.ts';
export * from './score.ts';
export * from './thread.ts';
