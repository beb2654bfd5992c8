import { errorOf } from '../../clients/typescript/src/index.ts';
import { GATEWAY, storedKey } from './session.ts';

/** One line of the metrics. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** How many requests took at most each of these seconds. The last is infinite: all of them. */
export type Histogram = ReadonlyMap<number, number>;

/** Times of requests by method and route. */
export type Times = ReadonlyMap<string, Histogram>;

export interface Snapshot {
  /** The time in milliseconds. */
  readonly at: number;
  readonly samples: readonly Sample[];
  readonly times: Times;
  /** Requests that failed by a fault of the gateway or its backend, since the process started. */
  readonly failed: number;
}

/** Throws an `ApiError` if the key may not read them, or if there are none. */
export async function readMetrics(signal: AbortSignal): Promise<Snapshot> {
  const key = storedKey();
  const headers = new Headers(key === undefined ? [] : [['authorization', `Bearer ${key}`]]);
  const response = await fetch(`${GATEWAY}metrics`, { signal, headers });
  if (!response.ok) {
    const requestId = response.headers.get('x-request-id') ?? undefined;
    const body = await response.json().catch(() => undefined);
    throw (
      errorOf(body, { status: response.status, requestId, retryAfter: undefined }) ?? new Error(response.statusText)
    );
  }
  const samples = samplesOf(await response.text());
  return { at: Date.now(), samples, times: timesOf(samples), failed: failedOf(samples) };
}

/** Reads the text format of Prometheus, as far as the gateway writes it. */
const samplesOf = (text: string): Sample[] =>
  text.split('\n').flatMap((line) => {
    const [, name, inner = '', value] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
    if (name === undefined) return [];
    const labels = [...inner.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', of = '']) => [label, of]);
    return { name, labels: Object.fromEntries(labels), value: Number(value) };
  });

/** What this page and probes ask. */
const OWN = new Set(['/metrics', '/healthz', '/livez', '/readyz']);

function timesOf(samples: readonly Sample[]): Times {
  const times = new Map<string, Map<number, number>>();
  for (const { name, labels, value } of samples) {
    const { method = '', route = '', le = '' } = labels;
    if (name !== 'omp_http_request_duration_seconds_bucket' || OWN.has(route)) continue;
    const verb = `${method} ${route}`;
    const histogram = times.get(verb) ?? new Map<number, number>();
    const bound = le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le);
    // There is one for each status.
    times.set(verb, histogram.set(bound, (histogram.get(bound) ?? 0) + value));
  }
  return times;
}

const failedOf = (samples: readonly Sample[]): number =>
  samples
    .filter(({ name, labels: { route = '', status = '' } }) => {
      return name === 'omp_http_request_duration_seconds_count' && !OWN.has(route) && status.startsWith('5');
    })
    .reduce((sum, { value }) => sum + value, 0);

export const readingOf = ({ samples }: Snapshot, name: string, labels: Sample['labels'] = {}): number | undefined =>
  samples.find(
    (sample) => sample.name === name && Object.entries(labels).every(([label, of]) => sample.labels[label] === of),
  )?.value;

/** The sum over all series of this name, such as those of several stores. */
export const sumOfReadings = (
  { samples }: Snapshot,
  name: string,
  labels: Sample['labels'] = {},
): number | undefined => {
  const found = samples.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([label, of]) => sample.labels[label] === of),
  );
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
};

/** The difference of two samples; requests by verb. */
export const since = (before: Times, now: Times): Times =>
  new Map([...now].map(([verb, histogram]) => [verb, less(histogram, before.get(verb))]));

const less = (now: Histogram, before: Histogram | undefined): Histogram =>
  new Map([...now].map(([bound, count]) => [bound, count - (before?.get(bound) ?? 0)]));

/** The requests of one verb, or of all. */
export const histogramOf = (times: Times, verb: string | undefined): Histogram =>
  sumOf(verb === undefined ? [...times.values()] : [times.get(verb) ?? new Map()]);

export function sumOf(histograms: readonly Histogram[]): Histogram {
  const sum = new Map<number, number>();
  for (const histogram of histograms)
    for (const [bound, count] of histogram) sum.set(bound, (sum.get(bound) ?? 0) + count);
  return sum;
}

export const totalOf = (histogram: Histogram): number => histogram.get(Number.POSITIVE_INFINITY) ?? 0;

/** Seconds that this share of the requests took at most, as Prometheus estimates it. Undefined: there were none. */
export function quantile(histogram: Histogram, share: number): number | undefined {
  const wanted = share * totalOf(histogram);
  if (wanted === 0) return undefined;
  let [below, from] = [0, 0];
  for (const [bound, count] of [...histogram].sort(([a], [b]) => a - b)) {
    if (count >= wanted)
      return Number.isFinite(bound) ? from + ((bound - from) * (wanted - below)) / (count - below) : from;
    [below, from] = [count, bound];
  }
  return from;
}

/** Whether the request searches, for a person or for a prompt. */
export const isSearch = (verb: string): boolean => /\/(search|context)$/.test(verb);

const ROUGH = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
/** Seconds as milliseconds. */
export const milliseconds = (seconds: number): string => `${ROUGH.format(1_000 * seconds)} ms`;
