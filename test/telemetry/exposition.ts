/** One line of `/metrics`. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Reads the text format of Prometheus, as far as a gateway writes it. */
export function samplesOf(text: string): Sample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', inner = '', value = ''] = /^([a-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
      if (name === '') throw new Error(`not a sample: ${line}`);
      const labels = [...inner.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', of = '']) => [label, of]);
      return { name, labels: Object.fromEntries(labels) as Record<string, string>, value: Number(value) };
    });
}

/** The value of the one sample with this name and, among others, these labels; undefined: there is none. */
export function readingOf(samples: readonly Sample[], name: string, labels: Sample['labels'] = {}): number | undefined {
  const found = withLabels(samples, name, labels);
  if (found.length > 1) throw new Error(`${found.length} samples of ${name} with ${JSON.stringify(labels)}`);
  return found[0]?.value;
}

/** The sum over all of them. */
export const sumOf = (samples: readonly Sample[], name: string, labels: Sample['labels'] = {}): number =>
  withLabels(samples, name, labels).reduce((sum, { value }) => sum + value, 0);

export const withLabels = (samples: readonly Sample[], name: string, labels: Sample['labels'] = {}): Sample[] =>
  samples.filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
