import { Gauge, Histogram, type Registry } from 'prom-client';
import { type Call, OmpError } from '#contract';
import type { Telemetry } from '../core/telemetry.ts';

/** Upper bounds in seconds: from a read of a database nearby to the longest that a request may take by default. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Anything else is `other`: whoever sends it must not be able to add to what is kept. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']);

/** Times requests, and what they ask of the backend and the embedding service. */
export function countRequests(registry: Registry): Telemetry {
  const registers = [registry];
  const requests = new Histogram({
    name: 'omp_http_request_duration_seconds',
    help: 'Time from the headers of a request to the end of its answer; status 499: the client left.',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS,
    registers,
  });
  const backend = new Histogram({
    name: 'omp_backend_request_duration_seconds',
    help: 'Time of one operation of the backend, with repetitions and the vectors it needs; outcome: ok, an error code, or client_gone.',
    labelNames: ['provider', 'operation', 'outcome'],
    buckets: BUCKETS,
    registers,
  });
  const embedding = new Histogram({
    name: 'omp_embedding_request_duration_seconds',
    help: 'Time for the vectors of one batch of texts; outcome: ok, an error code, or client_gone.',
    labelNames: ['service', 'outcome'],
    buckets: BUCKETS,
    registers,
  });
  let running = 0;
  new Gauge({
    name: 'omp_http_requests_in_flight',
    help: 'Requests that are being worked on.',
    registers,
    collect() {
      this.set(running);
    },
  });

  return {
    request() {
      running++;
      return {
        trace: undefined,
        end({ method, route, status, seconds }) {
          running--;
          requests.observe({ method: METHODS.has(method) ? method : 'other', route, status }, seconds);
        },
      };
    },
    async call({ kind, dependency, name }, call, work) {
      const started = performance.now();
      const end = (outcome: string) => {
        const seconds = (performance.now() - started) / 1_000;
        if (kind === 'backend') backend.observe({ provider: dependency, operation: name, outcome }, seconds);
        else embedding.observe({ service: dependency, outcome }, seconds);
      };
      try {
        const result = await work(call);
        end('ok');
        return result;
      } catch (error) {
        end(outcomeOf(error, call));
        throw error;
      }
    },
  };
}

/**
 * Why it failed. Of a call that was given up, the reason it was given up for counts: what then comes out of a backend's
 * client is of no interest. The one reason that is nobody's failure but the client's is that it left.
 */
function outcomeOf(error: unknown, { signal }: Call): string {
  const cause = signal.aborted ? signal.reason : error;
  if (!(cause instanceof OmpError)) return 'provider_error';
  return signal.aborted && cause.code === 'invalid_request' ? 'client_gone' : cause.code;
}
