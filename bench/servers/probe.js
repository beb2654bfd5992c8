/**
 * Loaded into the gateway before it starts: measures how late its event loop is. "start" begins, "stop" answers with
 * the delay in milliseconds beyond the sampling interval. Plain JavaScript, since the gateway runs without a loader.
 * Ends the gateway when the benchmark is gone.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const INTERVAL_MS = 1;

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: INTERVAL_MS });
  const beyond = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - INTERVAL_MS);
  process.once('disconnect', () => process.kill(process.pid));
  process.on('message', (message) => {
    if (message === 'start') {
      delay.reset();
      delay.enable();
      process.send('started');
    } else {
      delay.disable();
      process.send({ p50: beyond(delay.percentile(50)), p99: beyond(delay.percentile(99)), max: beyond(delay.max) });
    }
  });
}
