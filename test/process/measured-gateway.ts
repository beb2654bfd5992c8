import { type Sample, samplesOf } from '../telemetry/exposition.ts';
import { type RunningGateway, startGateway } from './gateway.ts';

export interface MeasuredGateway extends RunningGateway {
  /** Where its measures are. */
  readonly metricsUrl: string;
  text(): Promise<string>;
  samples(): Promise<Sample[]>;
}

/** A gateway whose measures can be asked for. */
export async function startMeasuredGateway(env: Readonly<Record<string, string>> = {}): Promise<MeasuredGateway> {
  const gateway = await startGateway({ env: { OMP_METRICS_PORT: '0', ...env } });
  const [, port] = await gateway.output(/"port":(\d+),"msg":"the port for metrics is open"/);
  const metricsUrl = `http://127.0.0.1:${port}/metrics`;
  const text = async () => (await fetch(metricsUrl)).text();
  return { ...gateway, metricsUrl, text, samples: async () => samplesOf(await text()) };
}
