import type { Log } from '#contract';
import { type Telemetry, UNFOLLOWED } from '../core/telemetry.ts';
import type { TracingOptions } from './open.ts';
import { readTraceContext } from './trace-context.ts';
import type { Sdk } from './tracing-sdk.ts';

export interface OpenTracing {
  readonly telemetry: Telemetry;
  /** Sends what waits to be sent, within two seconds. Never rejects. */
  close(): Promise<void>;
}

/** Where OpenTelemetry's API keeps what is registered, so that several copies of it find the same. */
const REGISTRY = Symbol.for('opentelemetry.js.api.1');

/** Longest wait for the collector at the end, in milliseconds. */
const FLUSH_MS = 2_000;

/**
 * Spans go to the SDK that the operator has registered with OpenTelemetry's API, if there is one, else to the configured
 * collector. Without either no spans are made and nothing of OpenTelemetry is loaded.
 */
export async function openTracing(options: TracingOptions | undefined, log: Log): Promise<OpenTracing> {
  const sdk = await openSdk(options, log);
  if (!sdk) return { telemetry: passingOn, close: async () => {} };
  const { spansOf } = await import('./spans.ts');
  return { telemetry: spansOf(sdk), close: () => flush(sdk, log) };
}

async function openSdk(options: TracingOptions | undefined, log: Log): Promise<Sdk | undefined> {
  if (REGISTRY in globalThis) {
    const { registeredSdk } = await import('./registered-sdk.ts');
    const sdk = registeredSdk();
    if (sdk) {
      log.info({}, 'traces go to the OpenTelemetry SDK that was registered before, as that is configured');
      return sdk;
    }
  }
  return options && (await import('./tracing-sdk.ts')).openSdk(options, log);
}

async function flush(sdk: Sdk, log: Log): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, FLUSH_MS, 'late');
  });
  const ended = await Promise.race([sdk.shutdown().catch(() => 'failed'), late]);
  clearTimeout(timer);
  if (ended !== undefined) log.warn({}, 'the last traces could not be sent');
}

/** No spans are made, but a client's trace goes on through the services that are asked on its behalf. */
export const passingOn: Telemetry = {
  request(_method, header) {
    const given = readTraceContext(header);
    if (!given) return UNFOLLOWED;
    const { id, headers } = given;
    return { ...UNFOLLOWED, trace: { id, headers: () => headers } };
  },
  call: (_operation, call, work) => work(call),
};
