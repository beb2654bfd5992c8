import lancedb from '../../providers/collections/lancedb.ts';
import qdrant from '../../providers/collections/qdrant.ts';
import { chromaModule, NO_CHROMA, openChroma } from '../chroma/start.ts';
import { conformance, type Open } from '../conformance/conformance.ts';
import { BARE, COLUMNS, DOCUMENT, openShape } from '../mapped/tables.ts';
import { qdrantBackend } from '../qdrant/server.ts';
import { FULL } from '../support/full.ts';
import { openGateway } from '../support/gateway.ts';
import { mountedBelow } from '../support/mounted.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { openSubject, type Subject, type SubjectOptions } from '../support/subject.ts';

type Kind = readonly [name: string, open: (options: Partial<SubjectOptions>) => Promise<Subject>];

const MEMORY: Kind = [
  'memory',
  (options) => openSubject({ provider: 'memory', options: { scopes: 'native' }, ...options }),
];
const POSTGRES: Kind = [
  'postgres, embedded',
  (options) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...options }),
];
const PINECONE: Kind = ['pinecone', (options) => openPineconeSubject({}, { layout: 'single' }, options)];
const TABLE: Kind = ['a mapped table', (options) => openShape(COLUMNS, options)];
const DOCUMENTS: Kind = ['a mapped table of documents', (options) => openShape(DOCUMENT, options)];
/** Without scopes. */
const BARE_TABLE: Kind = ['a mapped table with the least columns', (options) => openShape(BARE, options)];
const SERVER: Kind = ['postgres, on a server', (options) => openServerSubject({}, undefined, options)];
const QDRANT: Kind = [
  'qdrant',
  async (options) => {
    const { close, mode, ...backend } = await qdrantBackend();
    const open: Parameters<typeof openGateway>[0] = (context) => qdrant.open(backend.options, context);
    const subject = await openGateway(open, { mode, ...options });
    return { ...subject, close: () => subject.close().finally(close) };
  },
];

const LANCEDB: Kind = [
  'lancedb',
  (options) => openGateway((context) => lancedb.open({}, context), { mode: 'vector', ...options }),
];

/** A provider of others. */
const CHROMA: Kind = [
  'chroma',
  async (options) => {
    const [chroma, { open }] = [await openChroma(), await chromaModule()];
    const subject = await openGateway((context) => open({ url: chroma.url }, context), { mode: 'vector', ...options });
    return { ...subject, close: () => subject.close().finally(chroma.close) };
  },
];

const ALL = [MEMORY, POSTGRES, PINECONE, QDRANT, TABLE, DOCUMENTS, BARE_TABLE, ...(SERVER_URL === '' ? [] : [SERVER])];
const PAIRS: readonly (readonly [Kind, Kind])[] = FULL
  ? [
      ...ALL.flatMap((mounted) => ALL.map((root) => [mounted, root] as const)),
      // A write takes long: not with each of the others.
      ...[MEMORY, POSTGRES].flatMap((other) => [[LANCEDB, other] as const, [other, LANCEDB] as const]),
      ...(NO_CHROMA === '' ? [[CHROMA, MEMORY] as const, [MEMORY, CHROMA] as const] : []),
    ]
  : [
      [POSTGRES, MEMORY],
      [TABLE, MEMORY],
    ];

for (const [[name, open], [rootName, openRoot]] of PAIRS) {
  const mounted: Open = (options) => open({ ...options, ...mountedBelow(() => openRoot({})) });
  conformance(`${name}, mounted below ${rootName}`, mounted);
}
