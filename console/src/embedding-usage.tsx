import { type EmbeddingUsage, type EmbeddingUsageRow, ScopeDeniedError } from '../../clients/typescript/src/index.ts';
import { Bars } from './chart.tsx';
import { count } from './format.tsx';
import { Failure, useLoad } from './load.tsx';
import { useSession } from './session.ts';
import { type Column, Table } from './ui.tsx';

const DAY_MS = 86_400_000;

/** What embedding costs, for a caller with `admin:*`; nothing if it costs nothing. */
export function EmbeddingCost() {
  const { client, capabilities } = useSession();
  const isCounted = capabilities.features.embedding_usage === true;
  const { data, error, reload } = useLoad(isCounted ? '' : undefined, (signal) =>
    client.embeddingUsage({}, { signal }),
  );
  // The page says so.
  if (error instanceof ScopeDeniedError) return null;
  if (error !== undefined) return <Failure error={error} retry={reload} />;
  return data ? <Usage {...data} /> : null;
}

const shown = (tokens: number | null) => (tokens === null ? 'unknown' : count(tokens));

const COLUMNS: readonly Column<EmbeddingUsageRow>[] = [
  { name: 'Key', cell: ({ app }) => <span dir="auto">{app ?? 'none, or the gateway'}</span>, by: ({ app }) => app },
  { name: 'Model', cell: ({ model }) => model, by: ({ model }) => model },
  { name: 'Tokens', cell: ({ tokens }) => shown(tokens), by: ({ tokens }) => tokens, isNumber: true },
  { name: 'Texts', cell: ({ texts }) => count(texts), by: ({ texts }) => texts, isNumber: true },
  { name: 'Requests', cell: ({ requests }) => count(requests), by: ({ requests }) => requests, isNumber: true },
];

function Usage({ since, until, counted_since, items, totals }: EmbeddingUsage) {
  const unit = totals.tokens === null ? 'texts' : 'tokens';
  const bars: { label: string; value: number }[] = [];
  for (let at = Date.parse(since); at <= Date.parse(until); at += DAY_MS) {
    const label = new Date(at).toISOString().slice(0, 10);
    const value = items.reduce((sum, row) => sum + (row.day === label ? (row[unit] ?? 0) : 0), 0);
    bars.push({ label, value });
  }
  const keys = new Map<string, EmbeddingUsageRow>();
  for (const row of items) {
    const name = JSON.stringify([row.app, row.model]);
    const { texts, tokens, requests } = keys.get(name) ?? { texts: 0, tokens: 0, requests: 0 };
    keys.set(name, {
      ...row,
      texts: texts + row.texts,
      tokens: tokens === null || row.tokens === null ? null : tokens + row.tokens,
      requests: requests + row.requests,
    });
  }
  return (
    <section>
      <h2>Embedding service</h2>
      <p>
        The last {bars.length} days: {shown(totals.tokens)} tokens, {count(totals.texts)} texts,{' '}
        {count(totals.requests)} requests.
        {counted_since && ` This gateway has counted since ${counted_since.slice(0, 10)}, when it started.`}
      </p>
      <Bars title={`Embedded ${unit} by day, UTC`} bars={bars} />
      <Table label="Embedding service by key" rows={[...keys.values()]} columns={COLUMNS} />
    </section>
  );
}
