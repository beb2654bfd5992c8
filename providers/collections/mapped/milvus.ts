import type { DescribeCollectionResponse, RowData } from '@zilliz/milvus2-sdk-node';
import { type Measure, OmpError, type PointFields, setPath } from '#provider';
import { type Layout, quoted, type Row } from '../points/milvus.ts';

/*
 * Rows of a collection that another application fills: a field is a column, a key in a column of JSON, or, where the collection takes any, a key
 * beside the columns.
 */

type Schema = DescribeCollectionResponse['schema'];

/** By what Milvus calls the metric. */
const MEASURES: Readonly<Record<string, Measure>> = { COSINE: 'cosine', L2: 'squared distance', IP: 'product' };

/** What the measure of a collection is by its index; or why it has none. */
export const measureOf = (metric: string | undefined): { readonly measure?: Measure; readonly mistake?: string } =>
  MEASURES[metric ?? '']
    ? { measure: MEASURES[metric ?? ''] }
    : { mistake: `it compares vectors by ${metric ?? 'nothing, since they have no index'}` };

/** `mistake`: why the collection cannot be read, or cannot be written and shall be. */
export function layoutOf({ fields, enable_dynamic_field }: Schema, writable: boolean) {
  const columns = new Map(fields.map((field) => [field.name, field]));
  const given = fields.filter((field) => !field.is_function_output);
  const key = given.find((field) => field.is_primary_key);
  const vectors = given.filter(({ data_type }) => data_type.endsWith('Vector'));
  const [vector] = vectors;
  const isText = key?.data_type === 'VarChar';
  const [keyName, vectorName] = [String(key?.name), String(vector?.name)];
  const isColumn = (field: string): boolean => {
    const [head = '', ...steps] = field.split('.');
    const column = columns.get(head);
    if (column ? steps.length > 0 && column.data_type !== 'JSON' : !enable_dynamic_field)
      throw new Error('there is no such field');
    return column !== undefined;
  };

  const layout: Layout = {
    ...{ key: keyName, vector: vectorName },
    path(field) {
      const steps = field.split('.');
      const head = isColumn(field) ? steps.shift() : '$meta';
      return head + steps.map((step) => `[${quoted(step)}]`).join('');
    },
    outputs(wanted) {
      const all = given.filter((field) => field !== key && field !== vector).map(({ name }) => name);
      if (!wanted) return enable_dynamic_field ? [...all, '$meta'] : all;
      return [...new Set(wanted.map((field) => (isColumn(field) ? (field.split('.')[0] as string) : '$meta')))];
    },
    after: (id) => `${keyName} > ${isText ? quoted(id ?? '') : (id ?? '-9223372036854775807')}`,
    keyOf: (id) => (isText ? quoted(id) : isInteger(id) ? id : undefined),
    rowOf({ id, fields: changed, vector: made }, before = { [keyName]: id }) {
      const { $meta, ...cells } = before;
      requireExact([$meta, ...given.map(({ name, data_type }) => (data_type === 'JSON' ? cells[name] : undefined))]);
      const row: RowData = structuredClone({ ...cells, ...Object($meta) });
      for (const [name, value] of Object.entries(changed)) {
        isColumn(name);
        setPath(row as Record<string, unknown>, name, value);
      }
      if (made) row[vectorName] = [...made];
      requireFit(given, row);
      return row;
    },
    fieldsOf({ $meta, ...row }) {
      const cells = Object.entries({ ...row, ...Object($meta) }).filter(
        ([name]) => name !== keyName && name !== vectorName,
      );
      const isLong = (name: string) => columns.get(name)?.data_type === 'Int64';
      // With `nested` there are objects.
      return Object.fromEntries(cells.map(([name, cell]) => [name, isLong(name) ? Number(cell) : cell])) as PointFields;
    },
  };
  const mistake =
    vectors.length !== 1 || vector?.data_type !== 'FloatVector'
      ? 'its points have several vectors, or none of floats with 32 bits'
      : writable && (!isText || key.autoID)
        ? 'its ids are none that the gateway could make; serve it without OMP_MILVUS_WRITABLE'
        : undefined;
  return { layout, dimensions: Number(vector?.dim ?? 0), mistake };
}

/** Throws unless the row can be stored. */
function requireFit(columns: Schema['fields'], row: Row): void {
  for (const { name, nullable, default_value, max_length } of columns) {
    const value = row[name];
    if (value === undefined && !nullable && default_value == null)
      throw new OmpError('unsupported_capability', `every point needs a "${name}", which no memory has`);
    if (typeof value === 'string' && Buffer.byteLength(value) > Number(max_length))
      throw new OmpError('payload_too_large', `the field "${name}" of the collection has at most ${max_length} bytes`);
  }
}

/** Throws if the client rounded a number of JSON: it would be written back as another one. */
function requireExact(cells: unknown): void {
  JSON.stringify(cells, (_, cell) => {
    if (typeof cell === 'number' && Math.abs(cell) > Number.MAX_SAFE_INTEGER)
      throw new OmpError('unsupported_capability', 'a number of the point is too large to be written back as it is');
    return cell;
  });
}

/** As an integer of 64 bits is written. */
const isInteger = (id: string): boolean =>
  /^(?:0|-?[1-9]\d{0,18})$/.test(id) && BigInt.asIntN(64, BigInt(id)) === BigInt(id);
