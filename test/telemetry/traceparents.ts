import fc from 'fast-check';

export const ID = '4bf92f3577b34da6a3ce929d0e0e4736';
export const SPAN = '00f067aa0ba902b7';

/** Headers of a request, as telemetry asks for them. */
export const headerOf =
  (headers: Readonly<Record<string, string | undefined>>) =>
  (name: string): string | undefined =>
    headers[name];

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length });

const wellFormed = fc
  .tuple(fc.oneof(fc.constant('00'), hex(2)), hex(32), hex(16), hex(2), fc.constantFrom('', '', '-', '-more', '.more'))
  .map(([version, id, span, flags, more]) => `${version}-${id}-${span}-${flags}${more}`);

const damaged = fc
  .tuple(wellFormed, fc.nat(60), fc.constantFrom('', '0', 'F', '-', ' ', ',', 'é', 'g'), fc.nat(2))
  .map(([text, at, put, cut]) => text.slice(0, at) + put + text.slice(at + cut));

/** What may come as `traceparent`: right, nearly right, several, anything. HTTP takes spaces around it away. */
export const traceparents: fc.Arbitrary<string> = fc
  .oneof(
    wellFormed,
    damaged,
    fc.tuple(wellFormed, wellFormed).map((two) => two.join(', ')),
    fc.string(),
  )
  .map((text) => text.trim());
