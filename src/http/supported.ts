import { OmpError, type Provider } from '#contract';

/** The verb, or `unsupported_capability` when this provider lacks it. */
export function supported<Verb>(provider: Provider, name: string, verb: Verb | undefined): Verb {
  if (verb === undefined) throw unsupported(provider, name);
  return verb;
}

export const unsupported = (provider: Provider, name: string): OmpError =>
  new OmpError('unsupported_capability', `the provider does not support ${name}`, { provider: provider.name });
