import { DATABASES } from '../collections/databases.ts';
import { conformance, type Open } from '../conformance/conformance.ts';
import { BARE, COLUMNS, DOCUMENT, openShape } from '../mapped/tables.ts';
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
/** Those that can be had here. */
const COLLECTIONS: readonly Kind[] = DATABASES.filter(({ absent }) => absent === '').map(
  ({ name, provider, open: openDatabase }) => [
    name,
    async (options) => {
      const database = await openDatabase();
      const open: Parameters<typeof openGateway>[0] = (context) => provider.open(database.options, context);
      const subject = await openGateway(open, { mode: 'vector', ...options });
      return { ...subject, close: () => subject.close().finally(database.close) };
    },
  ],
);

const ALL = [MEMORY, POSTGRES, PINECONE, TABLE, DOCUMENTS, BARE_TABLE, ...(SERVER_URL === '' ? [] : [SERVER])];
const PAIRS: readonly (readonly [Kind, Kind])[] = FULL
  ? [
      ...ALL.flatMap((mounted) => ALL.map((root) => [mounted, root] as const)),
      // The kit makes them alike above their points: not with each of the others, nor with each other.
      ...COLLECTIONS.flatMap((one) =>
        [MEMORY, POSTGRES].flatMap((other) => [[one, other] as const, [other, one] as const]),
      ),
    ]
  : [
      [POSTGRES, MEMORY],
      [TABLE, MEMORY],
    ];

for (const [[name, open], [rootName, openRoot]] of PAIRS) {
  const mounted: Open = (options) => open({ ...options, ...mountedBelow(() => openRoot({})) });
  conformance(`${name}, mounted below ${rootName}`, mounted);
}
