/** The trace that a client's headers name (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly id: string;
  /** The same, for another service, in the version of the headers that is known here. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Later versions may say more after the flags; what they begin with stays. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-((?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** The flag that is known of every version: whether the caller records this trace. */
const SAMPLED = 0x01;

/** As much has to be passed on; more may be too much for the next service. In characters. */
const MOST_STATE = 512;

/** Undefined: none is named, or not as it should be, which is no reason to refuse a request. */
export function readTraceContext(header: (name: string) => string | undefined): TraceContext | undefined {
  const [, version, ids, flags, more] = TRACEPARENT.exec(header('traceparent') ?? '') ?? [];
  if (ids === undefined || flags === undefined || (version === '00' && more !== undefined)) return undefined;
  const known = version === '00' ? flags : `0${Number.parseInt(flags, 16) & SAMPLED}`;
  const traceparent = `00-${ids}-${known}`;
  const tracestate = header('tracestate');
  const passed = tracestate !== undefined && tracestate !== '' && tracestate.length <= MOST_STATE;
  return { id: ids.slice(0, 32), headers: passed ? { traceparent, tracestate } : { traceparent } };
}
