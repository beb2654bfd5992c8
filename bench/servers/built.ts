/**
 * Loads a module from `dist` with the types of its source, so that the shipped code is measured. (From source, the loader would
 * add a call to every function.)
 */
export const built = <Module>(path: string): Promise<Module> =>
  import(new URL(`../../dist/${path}.js`, import.meta.url).href);
