import { ORIGIN } from '#contract';

/** A memory without its origin, which an import changes. */
export const withoutOrigin = <Fields extends object>({ ...fields }: Fields): Fields => {
  Reflect.deleteProperty(fields, ORIGIN);
  return fields;
};
