/**
 * What is measured is what is shipped: `built` loads a module from `dist` under the types of its source.
 * (Run from source, the loader would add a call to every function that is made.)
 */
export const built = <Module>(path: string): Promise<Module> =>
  import(new URL(`../../dist/${path}.js`, import.meta.url).href);
