import {
  backgroundCall,
  type Call,
  defineProvider,
  type EmbedderIdentity,
  type EraseRequest,
  type Finding,
  type Holdings,
  MAX_RECORD_BYTES,
  type MaintenanceContext,
  OmpError,
  type ProviderCapabilities,
  type ProviderMethods,
  type ProviderModule,
} from '#contract';
import {
  type Collection,
  type CollectionContext,
  type CollectionSpec,
  type Description,
  type Failure,
  FIELDS,
  type MappingOptions,
} from './collection.ts';
import { inParts } from './in-parts.ts';
import { diagnoseMapped, finding, mappedMethods, requireForeign, suggestion } from './mapped.ts';
import { HEAD, headPoint, pointId, WHOLE } from './points.ts';
import { createReading, maxResults, type Shelf } from './reading.ts';
import { MAX_SORTED } from './walk.ts';
import { exportPart, holdingsOf, listUsers } from './walks.ts';
import { createWriting } from './writing.ts';

/**
 * A provider of a vector database, from an adapter that knows points alone: ids, vectors and fields. Makes of it memories with tags, scopes, lists
 * in order, search, patches, users, export and the rest.
 */
export const defineCollection = <Options>(spec: CollectionSpec<Options>): ProviderModule => {
  const { specVersion, name, title, options: schema } = spec;
  return defineProvider<Options>({
    specVersion,
    name,
    ...(schema && { options: schema }),
    async open(options, { embedder, max_record_bytes = MAX_RECORD_BYTES, data_dir, log }) {
      if (!embedder) throw new Error(`${title} searches by vectors only; set OMP_SEARCH_MODE to vector or hybrid`);
      const collection = await openedInTime(spec, options, { data_dir, log }, backgroundCall('start'));
      try {
        if (isMapped(spec, options)) {
          const [call, context] = [backgroundCall('start'), { embedder, model: embedder.model, log, max_record_bytes }];
          const mapped = mappedMethods(requireForeign(collection, spec), { ...spec, options }, context, call);
          return await inTime(title, call, mapped);
        }
        await start(collection, spec, embedder, backgroundCall('start'));
      } catch (error) {
        letGo(collection);
        throw error;
      }
      const scoped = collection.traits.filters.includes('prefix');
      const { model, dimensions } = embedder;
      const shelf = { collection, model, dimensions, scoped, max_scan: MAX_SORTED };
      return {
        capabilities: capabilitiesOf(shelf),
        ...collectionMethods(shelf, max_record_bytes),
        users: (query, call) => listUsers(shelf, query, call),
        holdings: (query, call) => holdingsOf(shelf, query, call),
        ping: (call) => collection.ping(call),
        close: () => collection.close(),
      };
    },
    diagnose: (options, context) => diagnose(spec, options, context),
  });
};

type Verb = 'get' | 'list' | 'search' | 'check' | 'add' | 'batch' | 'update' | 'delete' | 'import' | 'export';
type CollectionMethods = Required<Pick<ProviderMethods, Verb>> &
  Pick<ProviderMethods, 'neighbours'> & { erase(request: EraseRequest, call: Call): Promise<Holdings> };

/** The verbs that points alone are enough for. */
export const collectionMethods = (shelf: Shelf, max_record_bytes: number): CollectionMethods => ({
  ...createReading(shelf),
  ...createWriting(shelf, { max_record_bytes }),
  export: (query, call) => exportPart(shelf, query, call),
});

const capabilitiesOf = ({ collection, scoped, max_scan }: Shelf): Partial<ProviderCapabilities> => ({
  vector_search: true,
  temporal: true,
  temporal_search: true,
  scopes: scoped ? 'native' : 'tags',
  tags: true,
  supports_supersession: true,
  max_search_results: maxResults(collection),
  max_list_scan: max_scan,
  etags: collection.replace !== undefined,
  origins: true,
  explain: true,
});

/** Creates the collection if there is none. Throws for an operator unless it is the gateway's, with vectors of this model. */
async function start<Options>(
  collection: Collection,
  spec: CollectionSpec<Options>,
  embedder: EmbedderIdentity,
  call: Call,
): Promise<void> {
  const { model, dimensions } = embedder;
  const found = await inTime(spec.title, call, collection.describe(call));
  if (found) await requireFit(found, { collection, spec, embedder }, call);
  const prepare = () => collection.prepare({ dimensions, fields: FIELDS }, call);
  if (!found) await prepare();
  const state = await inTime(spec.title, call, stateOf({ collection, spec, model: embedder.model }, found, call));
  if (state.problem !== undefined) throw new Error(state.problem);
  // An index too would be a change of what may be somebody else's.
  if (found) await prepare();
  if (state.isNew) await collection.upsert([headPoint(model, dimensions, collection.traits.ids)], call);
}

async function requireFit<Options>(
  { dimensions, mistake }: Description,
  { collection, spec, embedder }: { collection: Collection; spec: CollectionSpec<Options>; embedder: EmbedderIdentity },
  call: Call,
): Promise<void> {
  if (mistake !== undefined) throw new Error(mistake + (await suggestion(collection, spec, call)));
  if (dimensions !== embedder.dimensions)
    throw new Error(
      `the collection on ${spec.title} has vectors of ${dimensions} dimensions, and "${embedder.model}" makes ${embedder.dimensions}; name another collection, and ` +
        `move the memories with omp-gateway migrate${await suggestion(collection, spec, call)}`,
    );
}

/** Whose collection it is, by its head. */
async function stateOf<Options>(
  { collection, spec, model }: { collection: Collection; spec: CollectionSpec<Options>; model: string },
  found: Description | undefined,
  call: Call,
): Promise<{ isNew: boolean; problem?: string }> {
  const [head] = await collection.fetch([pointId(HEAD, collection.traits.ids)], WHOLE, call);
  if (!head) {
    // Another gateway may have created it just now: an empty one is nobody's.
    if (!found || found.empty) return { isNew: true };
    const problem = 'the collection was not made by the gateway; name another one';
    return { isNew: false, problem: problem + (await suggestion(collection, spec, call)) };
  }
  const { model: stored } = JSON.parse(String(head.fields.rest)) as { readonly model: string };
  if (stored === model) return { isNew: false };
  const problem =
    `the vectors of the collection are from "${stored}", not from "${model}"; name another collection, and move the memories with ` +
    'omp-gateway migrate';
  return { isNew: false, problem };
}

/** Whether the options are of a collection that another application fills. */
const isMapped = <Options>(
  { presets }: CollectionSpec<Options>,
  options: Options,
): options is Options & MappingOptions => presets !== undefined && (options as MappingOptions).preset !== undefined;

async function diagnose<Options>(
  spec: CollectionSpec<Options>,
  options: Options,
  context: MaintenanceContext,
): Promise<Finding[]> {
  const { title } = spec;
  const call = backgroundCall('doctor');
  let collection: Collection | undefined;
  try {
    collection = await openedInTime(spec, options, context, call);
    return await inTime(title, call, examine(collection, { spec, options, context }, call));
  } catch (error) {
    return [finding('connection', 'problem', error instanceof Error ? error.message : String(error))];
  } finally {
    if (collection) letGo(collection);
  }
}

/** By reading only. */
async function examine<Options>(
  collection: Collection,
  { spec, options, context }: { spec: CollectionSpec<Options>; options: Options; context: MaintenanceContext },
  call: Call,
): Promise<Finding[]> {
  const { title } = spec;
  const { embedder } = context;
  await collection.ping(call);
  if (isMapped(spec, options))
    return [
      ...(await diagnoseMapped(collection, { ...spec, options, embedder }, call)),
      ...((await spec.diagnose?.(collection, context, call)) ?? []),
    ];
  const found = await collection.describe(call);
  const findings = [finding('connection', 'ok', `${title} answers; whether the gateway may write was not tried`)];
  if (!found)
    return [...findings, finding('configuration', 'ok', 'there is no collection yet: the first start creates it')];
  let isServed = true;
  if (embedder) {
    await requireFit(found, { collection, spec, embedder }, call);
    const { problem } = await stateOf({ collection, spec, model: embedder.model }, found, call);
    isServed = problem === undefined;
    findings.push(
      problem === undefined
        ? finding('embedding', 'ok', `the vectors are of "${embedder.model}"`)
        : finding('embedding', 'problem', problem),
    );
  }
  const { unindexed = [] } = found;
  // A start creates none in a collection that it refuses.
  if (isServed && unindexed.length > 0)
    findings.push(
      finding(
        'indexes',
        'warning',
        `no index for ${unindexed.join(', ')}: filters by it read more; the next start creates it`,
      ),
    );
  return [...findings, ...((await spec.diagnose?.(collection, context, call)) ?? [])];
}

/** Work of reading at a start, or of `doctor`. Clients wait for minutes, or for ever, for a server that takes a connection and says nothing. */
async function inTime<Result>(title: string, call: Call, work: Promise<Result>): Promise<Result> {
  try {
    return await call.unlessAborted(work);
  } catch (error) {
    throw call.aborted ? new Error(`${title} did not answer in time`) : error;
  }
}

/** Some clients close only once the server has answered all that they asked. */
const letGo = (collection: Collection): void => void collection.close().catch(() => {});

/** One that is open only when nobody waits any more is let go. */
async function openedInTime<Options>(
  spec: CollectionSpec<Options>,
  options: Options,
  context: CollectionContext,
  call: Call,
): Promise<Collection> {
  const opening = opened(spec, options, context);
  try {
    return await inTime(spec.title, call, opening);
  } catch (error) {
    opening.then(letGo, () => {});
    throw error;
  }
}

/** What has no failure of its own is for the operator as it is: `open` says what to do. */
async function opened<Options>(
  spec: CollectionSpec<Options>,
  options: Options,
  context: CollectionContext,
): Promise<Collection> {
  try {
    return guarded(await spec.open(options, context), spec);
  } catch (error) {
    const failure = spec.failure(error);
    throw failure ? toOmpError(spec, failure, error) : error;
  }
}

const METHODS = [
  'describe',
  'prepare',
  'upsert',
  'fetch',
  'remove',
  'query',
  'scan',
  'count',
  'replace',
  'removeIf',
  'find',
  'patch',
  'page',
  'change',
  'ping',
] as const;

/** The collection with errors that the gateway understands. Nothing is begun for an aborted call. */
function guarded<Options>(collection: Collection, spec: CollectionSpec<Options>): Collection {
  const guard =
    <Arguments extends readonly unknown[], Result>(method: (...args: Arguments) => Promise<Result>) =>
    async (...args: Arguments): Promise<Result> => {
      (args.at(-1) as Call).throwIfAborted();
      try {
        return await method.apply(collection, args as unknown as Arguments & unknown[]);
      } catch (error) {
        if (error instanceof OmpError) throw error;
        (args.at(-1) as Call).throwIfAborted();
        throw toOmpError(spec, spec.failure(error), error);
      }
    };
  const methods = Object.fromEntries(
    METHODS.flatMap((name) => {
      const method = collection[name] as ((...args: unknown[]) => Promise<unknown>) | undefined;
      return method ? [[name, guard(method)]] : [];
    }),
  );
  // What an adapter adds for its `diagnose` stays.
  return inParts({ ...collection, ...(methods as unknown as Collection), close: async () => collection.close() });
}

function toOmpError<Options>(
  { name, title }: CollectionSpec<Options>,
  failure: Failure | undefined,
  error: unknown,
): OmpError {
  const {
    code = 'provider_error',
    message = `${title} rejected the request`,
    loggable = false,
    ...options
  } = failure ?? {};
  // The cause is logged. The text of an error may quote the request, which nobody may log.
  const cause = loggable ? error : new Error(error instanceof Error ? error.name : typeof error);
  return new OmpError(code, message, { ...options, provider: name, cause });
}
