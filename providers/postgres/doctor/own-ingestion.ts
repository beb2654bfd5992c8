import type { Finding } from '#contract';
import type { Names } from '../names.ts';
import { ok, warning } from './findings.ts';
import type { Read } from './reading.ts';

/** Of failed memories, told by their ids. */
const TOLD = 10;

interface Queue {
  readonly waiting: number;
  /** Seconds that the oldest has waited. */
  readonly oldest: number | null;
  readonly failed: number;
}

interface Reason {
  readonly error: string;
  readonly memories: number;
  readonly ids: readonly string[];
}

/** Memories whose vectors are yet to be computed, and those for which that failed. `computed`: whether this gateway does it. */
export async function lookAtIngestion(read: Read, { ingestion }: Names, computed: boolean): Promise<Finding> {
  const [{ waiting, oldest, failed } = { waiting: 0, oldest: null, failed: 0 }] = await read<Queue>(
    `select count(*) filter (where status <> 'failed')::int as waiting, count(*) filter (where status = 'failed')::int as failed,
       floor(date_part('epoch', now() - min(queued_at) filter (where status <> 'failed')))::int as oldest from ${ingestion}`,
  );
  const still =
    waiting === 0
      ? 'no memory waits for its vector'
      : `${count(waiting)} for a vector, the first since ${oldest} seconds${
          computed ? '' : '; a gateway computes them only while OMP_SEARCH_MODE is hybrid or vector'
        }`;
  if (failed === 0) return waiting > 0 && !computed ? warning('ingestion', still) : ok('ingestion', still);
  const reasons = await read<Reason>(
    `select coalesce(error, '') as error, count(*)::int as memories, (array_agg(memory_id order by memory_id))[1:${TOLD}] as ids
     from ${ingestion} where status = 'failed' group by 1 order by 2 desc, 1`,
  );
  const told = reasons.map(({ error, memories, ids }) => {
    const more = memories > ids.length ? ` and ${memories - ids.length} more` : '';
    return `${memories} because "${error}" (${ids.join(', ')}${more})`;
  });
  const sql = `update ${ingestion} set status = 'queued', attempts = 0, due_at = now() where status = 'failed';`;
  return warning(
    'ingestion',
    `${failed === 1 ? 'one memory has' : `${failed} memories have`} no vector, and only words lead to them: ${told.join('; ')}; ${still}`,
    { sql, reason: 'puts them into the queue again; those whose content is at fault have to be changed or deleted' },
  );
}

const count = (memories: number): string => (memories === 1 ? 'one memory waits' : `${memories} memories wait`);
