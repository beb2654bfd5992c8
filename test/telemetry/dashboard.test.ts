import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { embeddingsServer } from '../embedding/embeddings-server.ts';
import { dataFolder, startMeasuredGateway } from '../process/gateway.ts';
import { freshUser } from '../support/subject.ts';

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const FOLDER = 'deploy/monitoring';
const dashboard = JSON.parse(readFileSync(`${FOLDER}/grafana/dashboards/omp-gateway.json`, 'utf8')) as {
  readonly panels: readonly Panel[];
};
const rules = (
  parse(readFileSync(`${FOLDER}/alerts.yml`, 'utf8')) as {
    groups: { rules: { alert: string; expr: string; annotations: Record<string, string>; labels: object }[] }[];
  }
).groups.flatMap((group) => group.rules);
const documentation = readFileSync('docs/metrics.md', 'utf8');

const targets = dashboard.panels.flatMap(({ targets: each = [] }) => each);
const shown = targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'));
const asked = [...shown, ...rules.map(({ expr }) => expr)];

/** Runs the work once. */
function once<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let result: Promise<Result> | undefined;
  return () => {
    result ??= work();
    return result;
  };
}

/** Labels added by Prometheus. */
const FROM_PROMETHEUS = ['instance', 'job'];

/** The metrics of an expression. */
const namesIn = (expr: string): string[] => [...expr.matchAll(/\b(?:omp|nodejs|process)_\w+/g)].map(([name]) => name);
const selectorsIn = (expr: string) =>
  [...expr.matchAll(/\b((?:omp|nodejs|process)_\w+)\{([^}]*)\}/g)].flatMap(([, name = '', inner = '']) =>
    [...inner.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)].map(([, label = '', how = '', value = '']) => ({
      name,
      label,
      how,
      value,
    })),
  );
const groupsIn = (expr: string): string[] =>
  [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, inner = '']) => inner.split(',').map((label) => label.trim()));

describe('with the metrics of a gateway that has all of them', () => {
  const measured = once(async () => {
    const service = await embeddingsServer();
    // Another embedder than that of the root store.
    const embedding = { kind: 'openai', model: 'm', base_url: service.base_url };
    const notes = { mount: 'notes', data_dir: await dataFolder(), ingestion: 'async', embedding };
    const gateway = await startMeasuredGateway({
      OMP_SEARCH_MODE: 'hybrid',
      OMP_INGESTION: 'async',
      OMP_STORES: JSON.stringify({ notes }),
      OMP_WEBHOOK_SECRET: 'x'.repeat(32),
      OMP_USER_LIMIT_MEMORIES: '1000',
      OMP_RETENTION: JSON.stringify([{ days: 30 }]),
    });
    const user_id = freshUser();
    await gateway.client.add({ user_id, content: 'tea, no sugar' });
    await gateway.client.add({ user_id, content: 'no milk', scope: 'notes' });
    await gateway.client.search({ user_id, q: 'tea' });
    const samples = await gateway.samples();
    /** The labels of each name. */
    const known = new Map<string, ReadonlySet<string>>();
    for (const { name, labels } of samples) {
      known.set(name, new Set([...(known.get(name) ?? []), ...Object.keys(labels)]));
    }
    const own = [...(await gateway.text()).matchAll(/^# TYPE (omp_\w+) /gm)].map(([, name = '']) => name);
    await gateway.stop();
    await service.close();
    return { samples, known, own };
  });

  test('there are metrics, panels and alerts', async () => {
    const { own } = await measured();
    expect(own.length).toBeGreaterThan(12);
    expect(targets.length).toBeGreaterThan(20);
    expect(rules.length).toBeGreaterThan(6);
  });

  test('every metric of the dashboard and of the alerts exists', async () => {
    const { known } = await measured();
    const missing = asked.flatMap(namesIn).filter((name) => !known.has(name));
    expect(missing).toEqual([]);
  });

  test('every selected or grouped label exists', async () => {
    const { known } = await measured();
    for (const expr of asked) {
      for (const { name, label } of selectorsIn(expr)) {
        expect([...(known.get(name) ?? []), ...FROM_PROMETHEUS], `${name}{${label}}`).toContain(label);
      }
      const labels = namesIn(expr).flatMap((name) => [...(known.get(name) ?? [])]);
      for (const label of groupsIn(expr)) expect([...labels, ...FROM_PROMETHEUS], expr).toContain(label);
    }
  });

  test('every selected state exists', async () => {
    const { samples } = await measured();
    const selected = asked.flatMap(selectorsIn).filter(({ label }) => label === 'state');
    expect(selected.length).toBeGreaterThan(3);
    for (const { name, value } of selected) {
      const states = new Set(samples.filter((sample) => sample.name === name).map(({ labels }) => labels.state));
      for (const state of value.split('|')) expect([...states], `${name}{state="${state}"}`).toContain(state);
    }
  });

  test('every label of a legend is grouped by', () => {
    for (const { expr, legendFormat } of targets) {
      const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
      expect(groupsIn(expr), expr).toEqual(expect.arrayContaining(named));
    }
  });

  test('docs/metrics.md lists exactly the metrics of the gateway with their labels', async () => {
    const { known, own } = await measured();
    const rows = [...documentation.matchAll(/^\| `(omp_\w+)` \|([^|]*)\|/gm)].map(([, name = '', labels = '']) => ({
      name,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label).sort(),
    }));
    expect(rows.map(({ name }) => name).sort()).toEqual([...own].sort());
    for (const { name, labels } of rows) {
      const real = new Set([...(known.get(name) ?? []), ...(known.get(`${name}_bucket`) ?? [])]);
      real.delete('le');
      expect(labels, name).toEqual([...real].sort());
    }
  });

  test('every metric of the gateway is on the dashboard', async () => {
    const { own } = await measured();
    const used = new Set(shown.flatMap(namesIn).map((name) => name.replace(/_(bucket|sum|count)$/, '')));
    expect(own.filter((name) => !used.has(name))).toEqual([]);
  });
});

test('every panel has a data source, a title, a description and a query', () => {
  for (const { type, title, description, datasource, targets: each } of dashboard.panels) {
    expect(title).toMatch(/\S/);
    if (type === 'row') continue;
    expect(description, title).toMatch(/\S/);
    expect(datasource?.uid).toBe('$' + '{datasource}');
    expect(each?.length, title).toBeGreaterThan(0);
  }
});

test('docs/metrics.md lists every alert', () => {
  const explained = [...documentation.matchAll(/^\| `(Omp[A-Z]\w+)` \|/gm)].map(([, name]) => name);
  expect(explained).toEqual(rules.map(({ alert }) => alert));
});

describe('promtool', () => {
  const promtool = (...args: readonly string[]) => spawnSync('promtool', args, { encoding: 'utf8' });
  const HAS_PROMTOOL = promtool('--version').status === 0;
  const NO_PROMTOOL = 'promtool is not installed';
  const said = ({ status, stdout, stderr }: ReturnType<typeof promtool>) => ({ status, output: stdout + stderr });
  const inFile = (name: string, content: object, ...args: readonly string[]) => {
    const folder = mkdtempSync(join(tmpdir(), 'omp-t-'));
    try {
      writeFileSync(join(folder, name), JSON.stringify(content));
      return said(promtool(...args, join(folder, name)));
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  test('accepts configuration and alerts', ({ skip }) => {
    skip(!HAS_PROMTOOL, NO_PROMTOOL);
    expect(said(promtool('check', 'config', `${FOLDER}/prometheus.yml`))).toMatchObject({ status: 0 });
    expect(said(promtool('check', 'rules', `${FOLDER}/alerts.yml`))).toMatchObject({ status: 0 });
  });

  test('parses every expression of the dashboard', ({ skip }) => {
    skip(!HAS_PROMTOOL, NO_PROMTOOL);
    const recorded = (exprs: readonly string[]) => ({
      groups: [{ name: 'shown', rules: exprs.map((expr, i) => ({ record: `panel:${i}`, expr })) }],
    });
    expect(inFile('rules.yml', recorded(shown), 'check', 'rules')).toMatchObject({ status: 0 });
    expect(inFile('rules.yml', recorded(['sum(']), 'check', 'rules')).toMatchObject({ status: 1 });
  });

  test('fires the expected alerts', ({ skip }) => {
    skip(!HAS_PROMTOOL, NO_PROMTOOL);
    const at = 'job="omp-gateway",instance="a:9464"';
    const requests = `omp_http_request_duration_seconds_count{${at},method="GET",route="/memories/:id",status=`;
    const of = (values: Record<string, string>, expected: readonly string[]) => ({
      interval: '1m',
      input_series: Object.entries(values).map(([series, each]) => ({ series, values: each })),
      promql_expr_test: [
        {
          expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
          eval_time: '45m',
          exp_samples: expected.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
        },
      ],
    });
    const breaker = (open: number) => ({
      [`omp_circuit_breaker_state{${at},dependency="postgres",state="open"}`]: `${open}x60`,
    });
    const queued = (values: string) => ({ [`omp_ingestion_memories{${at},state="queued"}`]: values });
    const tests = [
      of({ [`up{${at}}`]: '0x60' }, ['OmpGatewayDown']),
      of({ [`up{${at}}`]: '1x60' }, []),
      of(breaker(1), ['OmpBreakerOpen']),
      of(breaker(0), []),
      of({ [`${requests}"200"}`]: '0+95x60', [`${requests}"502"}`]: '0+5x60' }, ['OmpErrors']),
      of({ [`${requests}"200"}`]: '0+999x60', [`${requests}"502"}`]: '0+1x60' }, []),
      of({ [`${requests}"200"}`]: '0+9x60', [`${requests}"429"}`]: '0+1x60' }, ['OmpRejecting']),
      of(queued('5+1x60'), ['OmpIngestionStuck']),
      of(queued('100-1x60'), []),
      of(queued('0x60'), []),
      of({ [`omp_ingestion_memories{${at},state="failed"}`]: '3x60' }, ['OmpIngestionFailed']),
      of({ [`omp_backend_waiting_requests{${at},provider="postgres"}`]: '400x60' }, ['OmpQueueGrowing']),
      of(
        {
          [`omp_event_loop_lag_seconds_bucket{${at},le="0.25"}`]: '0+1x60',
          [`omp_event_loop_lag_seconds_bucket{${at},le="0.5"}`]: '0+600x60',
          [`omp_event_loop_lag_seconds_bucket{${at},le="+Inf"}`]: '0+600x60',
        },
        ['OmpEventLoopLag'],
      ),
      of(
        {
          [`omp_http_request_duration_seconds_bucket{${at},route="/memories",le="2.5"}`]: '0+1x60',
          [`omp_http_request_duration_seconds_bucket{${at},route="/memories",le="+Inf"}`]: '0+600x60',
          [`omp_http_request_duration_seconds_bucket{${at},route="/memories",le="5"}`]: '0+600x60',
        },
        ['OmpSlow'],
      ),
    ];
    const content = { rule_files: [join(process.cwd(), FOLDER, 'alerts.yml')], evaluation_interval: '1m', tests };
    const { status, output } = inFile('alerts.test.yml', content, 'test', 'rules');
    expect(status, output).toBe(0);
  });
});
