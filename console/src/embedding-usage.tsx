import {
  type EmbeddingUsage,
  type EmbeddingUsageRow,
  type MemoryClient,
  ScopeDeniedError,
} from '../../clients/typescript/src/index.ts';
import { Bars } from './chart.tsx';
import { count } from './format.tsx';
import { Failure, useLoad } from './load.tsx';
import { useSession } from './session.ts';
import { Table } from './ui.tsx';

/** What embedding costs, for a caller with `admin:*`; nothing if it costs nothing. */
export function EmbeddingCost() {
  const { client, capabilities } = useSession();
  const { data, error } = useLoad(capabilities.features.embedding_usage ? '' : undefined, (signal) =>
    usageOf(client, signal),
  );
  // Without the grant, the page says so.
  if (error && !(error instanceof ScopeDeniedError)) return <Failure error={error} />;
  return data ? <Usage {...data} /> : null;
}

/** All pages, as one. */
async function usageOf(client: MemoryClient, signal: AbortSignal): Promise<EmbeddingUsage> {
  let page = await client.embeddingUsage({}, { signal }).page();
  const { since, until, items } = page;
  while (page.next_cursor) {
    page = await client.embeddingUsage({ since, until, cursor: page.next_cursor }, { signal }).page();
    items.push(...page.items);
  }
  return { ...page, items };
}

const shown = (tokens: number | null) => (tokens === null ? 'unknown' : count(tokens));
const columns = (['tokens', 'texts', 'requests'] as const).map((name) => ({
  name,
  cell: (row: EmbeddingUsageRow) => shown(row[name]),
  isNumber: true,
}));

/** The rows as one for each value of a field. */
function by(field: 'day' | 'app', rows: readonly EmbeddingUsageRow[]) {
  const sums = new Map<string | null, EmbeddingUsageRow>();
  for (const row of rows) {
    const sum = sums.get(row[field]) ?? { ...row, texts: 0, tokens: 0, requests: 0 };
    sum.texts += row.texts;
    sum.requests += row.requests;
    sum.tokens = sum.tokens === null || row.tokens === null ? null : sum.tokens + row.tokens;
    sums.set(row[field], sum);
  }
  return sums;
}

function Usage({ until, counted_since, items }: EmbeddingUsage) {
  const unit = items.some(({ tokens }) => tokens === null) ? 'texts' : 'tokens';
  const days = by('day', items);
  const bars = Array.from({ length: 30 }, (_, n) => {
    const label = new Date(Date.parse(until) - (29 - n) * 86_400_000).toISOString().slice(0, 10);
    return { label, value: days.get(label)?.[unit] ?? 0 };
  });
  return (
    <section>
      <h2>Embedding service</h2>
      {counted_since && <p>Counted since {counted_since.slice(0, 10)}.</p>}
      <Bars title={`${unit} of 30 days, UTC: ${count(bars.reduce((sum, { value }) => sum + value, 0))}`} bars={bars} />
      <Table
        label="Embedding service by key"
        rows={[...by('app', items).values()].sort((a, b) => (b[unit] ?? 0) - (a[unit] ?? 0))}
        columns={[{ name: 'Key', cell: ({ app }) => app ?? 'none, or the gateway' }, ...columns]}
      />
    </section>
  );
}
