import { createServer } from 'node:http';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { dataFolder } from '../process/gateway.ts';
import { freePort } from '../process/postgres-cluster.ts';
import { createRedis, NO_REDIS } from '../rate-limit/redis-server.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startSubject } from './subject.ts';
import { survive } from './survive.ts';

const WHILE_MS = 2_000;

/** No request may fail, however busy the machine is. */
async function embedded() {
  const OMP_DATA_DIR = await dataFolder();
  return { OMP_DATA_DIR, OMP_REQUEST_TIMEOUT_MS: '30000' };
}

describe('the rate limit store redis', () => {
  beforeEach(({ skip }) => skip(NO_REDIS !== '', NO_REDIS));

  test('its faults fail no request', async () => {
    const redis = await createRedis();
    await redis.start();
    const way = await startTcpProxy(redis.url);
    const env = {
      ...(await embedded()),
      OMP_RATE_LIMIT_STORE: 'redis',
      OMP_REDIS_URL: way.through(redis.url),
      OMP_RATE_LIMIT_PER_MINUTE: '1000000',
    };
    const { load, gateway } = await startSubject({ env, clients: 8, excuse: () => false });
    const { during } = load;
    for (const [name, begin, end] of [
      ['killed and started', () => redis.stop(), () => redis.start()],
      ['paused (SIGSTOP)', redis.freeze, redis.thaw],
      ['refused', way.down, way.up],
      ['black hole', () => way.become({ black_hole: true }), () => way.become({})],
      ['resets connections', () => way.become({ cut: { answers: 0.1, requests: 0.1 } }), () => way.become({})],
    ] as const) {
      await survive(load, {
        name: `Redis: ${name}`,
        async strike() {
          await begin();
          await during(WHILE_MS);
          await end();
        },
      });
    }
    await load.pause();
    expect(load.count.refused).toBe(0);
    expect((await gateway.stop()).status).toBe(0);
  });
});

test('a collector of traces that is down, hangs or fails affects no request', async () => {
  const port = await freePort();
  let collected = 0;
  let hangs = false;
  const collector = createServer((request, response) => {
    collected++;
    request.resume();
    if (!hangs) response.writeHead(500).end();
  });
  onTestFinished(() => {
    collector.closeAllConnections();
    collector.close();
  });
  const env = { ...(await embedded()), OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
  const { load, gateway } = await startSubject({ env, clients: 8, excuse: () => false });
  const untilAsked = async () => {
    const before = collected;
    while (collected === before) await load.during(20);
  };
  for (const [name, strike] of [
    ['dead', () => load.during(WHILE_MS)],
    [
      'answers 500',
      async () => {
        collector.listen(port, '127.0.0.1');
        await untilAsked();
      },
    ],
    [
      'takes traces and never answers',
      async () => {
        hangs = true;
        await untilAsked();
        await load.during(WHILE_MS);
      },
    ],
  ] as const) {
    await survive(load, { name: `collector of traces: ${name}`, strike });
  }
  await load.pause();
  expect(load.count.refused).toBe(0);
  expect((await gateway.stop()).status).toBe(0);
});
