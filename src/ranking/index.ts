export * from './analyse.ts';
export * from './analyse-later.ts';
export * from './half.ts';
export * from './score.ts';
export * from './thread.ts';
