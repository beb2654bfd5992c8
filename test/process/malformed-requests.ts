import fc, { type Arbitrary } from 'fast-check';

/** One connection's worth of bytes, mostly not what a client would send. */
export interface Attempt {
  readonly bytes: Buffer;
  /** Written in two parts, cut here. */
  readonly cut: number;
  /** What the client does after sending: waits for the response, closes its half, or disconnects. */
  readonly then: 'wait' | 'half-close' | 'vanish';
  /** Whether its response has no body. */
  readonly head: boolean;
}

const text = (values: readonly string[]) => fc.constantFrom(...values);
const words = (values: string) => text(values.split(' '));

/** Texts that cause trouble somewhere: encodings, prototypes, SQL, numbers, control characters. */
const NASTY = [
  ...['', ' ', '\0', '\t', '\u007f', '\u00ff', '\u202e\ufeff\u200b', 'e\u0301\ud83d\udc69\u200d\ud83d\udc69'],
  ...'__proto__ constructor toString hasOwnProperty ../../etc/passwd %s%n%p <script>alert(1)</script> []'.split(' '),
  ...'NaN -0 1e309 0x10 -1 1.5 null true * 2024-02-30 0000-00-00T00:00:00Z 2024-01-01T00:00:00+99:99'.split(' '),
  ...["'; drop table memories; --", '$(id) `id`'],
  ...['😀'.repeat(50), '9'.repeat(400), '*'.repeat(600), 'a/'.repeat(300)],
];
const nasty = fc.oneof(text(NASTY), fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ maxLength: 20 }));

const method = fc.oneof(
  { weight: 8, arbitrary: words('GET POST PATCH DELETE HEAD') },
  { weight: 1, arbitrary: words('OPTIONS PUT TRACE CONNECT QUERY PROPFIND PRI M-SEARCH PURGE') },
  { weight: 1, arbitrary: text(['get', 'BREW', '', 'GE T', 'G\0T', '\xff\xfe', 'GET\r\nX: y', 'A'.repeat(3_000)]) },
);

const ROUTES = ['/memories', '/memories/mem_x', '/memories/search', '/context', '/audit', '/capabilities', '/healthz'];
const ENDPOINTS = [
  ['POST', '/memories'],
  ['POST', '/memories'],
  ['POST', '/context'],
  ['PATCH', '/memories/mem_x'],
  ['DELETE', '/memories/mem_x'],
  ['GET', '/memories'],
  ['GET', '/memories/search'],
  ['GET', '/audit'],
] as const;
const encoding = words('% %zz %ff %00 %ED%A0%80 %2e%2e%2f %0d%0aX-Injected:%201 %25 %C0%80 +');
const path = fc.oneof(
  { weight: 6, arbitrary: text(ROUTES) },
  { weight: 1, arbitrary: text(['/openapi.json', '/docs', '/docs/start.js', '/docs/__proto__', '/', '/nowhere']) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(text(ROUTES), fc.oneof(encoding, nasty, text(['/', '//', '/..', '/./', '\\', ';a=b', '#x', '/x/y/z'])))
      .map(([route, more]) => `${route}/${more}`),
  },
  {
    weight: 1,
    arbitrary: text(['', ...'* http://other.example/memories https://[::1/ //memories /\\ memories :80'.split(' ')]),
  },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 20_000 }).map((length) => `/memories/${'a'.repeat(length)}`) },
);
const PARAMETERS = 'user_id q scope tag since until limit cursor min_score app __proto__'.split(' ');
const query = fc
  .array(
    fc.tuple(
      text([...PARAMETERS, 'user_id', 'user_id', 'q']),
      fc.oneof(encoding, nasty.map(encodeLoosely), nasty, text(['u', '10', 'x-y', '2024-01-01'])),
    ),
    { maxLength: 6 },
  )
  .map((pairs) => (pairs.length === 0 ? '' : `?${pairs.map(([name, value]) => `${name}=${value}`).join('&')}`));

function encodeLoosely(value: string): string {
  return value.isWellFormed() ? encodeURIComponent(value) : '%ED%A0%80';
}

const header = fc.oneof(
  fc
    .tuple(words('X-User-Id X-Request-Id Idempotency-Key Content-Type Accept X-Forwarded-For Cookie Origin'), nasty)
    .map(([name, value]) => `${name}: ${value}`),
  fc.tuple(text(['Authorization', 'X-API-Key']), nasty).map(([name, value]) => `${name}: Bearer omp_${value}`),
  text([
    'Host: ',
    'Host: other.example',
    'Host: a b',
    'Host: [::1',
    'Host: user@host:99999',
    'Content-Length: -1',
    'Content-Length: +5',
    'Content-Length: 0x10',
    'Content-Length: 5, 5',
    'Content-Length: 18446744073709551617',
    'Content-Length: 99999999999',
    'Content-Length: 3',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked, chunked',
    'Transfer-Encoding: identity, chunked',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: gzip',
    'Transfer-Encoding:\tchunked',
    'Transfer-Encoding : chunked',
    'Content-Encoding: gzip',
    'Content-Type: application/json; charset=utf-16',
    'Content-Type: text/html',
    'Connection: close',
    'Connection: upgrade\r\nUpgrade: websocket',
    'Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
    'Connection: Content-Length',
    'Expect: 100-continue',
    'Expect: the-unexpected',
    'Trailer: Host',
    'Range: bytes=0-1',
    'If-None-Match: *',
    'Access-Control-Request-Method: POST',
    ' folded: value',
    'X: a\r\n b',
    'X: a\nY: b',
    'X: a\rY: b',
    'no colon',
    ': no name',
    'X\0: nul',
    'X: \0',
    '__proto__: x',
    `X-Large: ${'a'.repeat(9_000)}`,
  ]),
);

const field = words('content user_id scope tags source confidence valid_to supersedes x-y query token_budget');
const json = fc.oneof(
  { weight: 3, arbitrary: text(['{"content":"a memory","user_id":"u"}', '{"query":"a memory","user_id":"u"}']) },
  fc.dictionary(field, fc.oneof(nasty, fc.jsonValue(), fc.constant('u'))).map((value) => JSON.stringify(value)),
  fc.json(),
  text([
    '{"__proto__":{"user_id":"u"},"content":"x"}',
    '{"constructor":{"prototype":{"admin":true}},"content":"x","user_id":"u"}',
    '{"content":"x","user_id":"u","x-__proto__":{"__proto__":[]}}',
    '{"content":"\\ud800","user_id":"u"}',
    '{"content":"x","user_id":"u","confidence":1e999}',
    '{"content":"x","user_id":"u","content":"y","user_id":["u"]}',
    '{"content":',
    '\u0000',
    'null',
    '"',
  ]),
  fc
    .integer({ min: 1, max: 20_000 })
    .map((depth) => `{"content":"x","user_id":"u","x-d":${'['.repeat(depth)}${']'.repeat(depth)}}`),
  fc.integer({ min: 1, max: 20_000 }).map((depth) => '{"a":'.repeat(depth)),
);
const body = fc.oneof(
  { weight: 5, arbitrary: json.map((value) => Buffer.from(value)) },
  { weight: 1, arbitrary: json.map((value) => Buffer.from(value, 'utf16le')) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
);

const chunkSize = text(['', 'zz', '-1', 'ffffffffffffffff1', '5;a=b', '5;a="\0', ' 5', '05']);
const framed = fc.tuple(body, fc.nat(9), chunkSize).map(([bytes, way, size]): [string[], Buffer] => {
  if (way < 6) return [[`Content-Length: ${bytes.length}`], bytes];
  if (way === 6) return [[`Content-Length: ${bytes.length + 7}`], bytes];
  if (way === 7) return [[`Content-Length: ${Math.max(0, bytes.length - 3)}`], bytes];
  const first = way === 8 ? bytes.length.toString(16) : size;
  const chunks = [`${first}\r\n`, bytes, '\r\n0\r\nX-Trailer: t\r\n\r\n'].map((part) => Buffer.from(part));
  return [['Transfer-Encoding: chunked'], Buffer.concat(chunks)];
});

/** Characters beyond Latin-1 as UTF-8. */
const bytesOf = (line: string): Buffer => Buffer.from(line, /[^\0-\xff]/.test(line) ? 'utf8' : 'latin1');

const oneRequest = (key: string): Arbitrary<{ method: string; bytes: Buffer }> =>
  fc
    .record({
      start: fc.oneof(
        {
          weight: 3,
          arbitrary: fc.tuple(fc.constantFrom(...ENDPOINTS), query).map(([[m, p], q]) => [m, p + q] as const),
        },
        { weight: 2, arbitrary: fc.tuple(method, path, query).map(([m, p, q]) => [m, p + q] as const) },
      ),
      version: fc.oneof(
        { weight: 20, arbitrary: fc.constant('HTTP/1.1') },
        text(['HTTP/1.0', 'HTTP/2.0', 'HTTP/1.1 ', '']),
      ),
      host: fc.oneof({ weight: 15, arbitrary: fc.constant(['Host: gateway']) }, fc.constant([])),
      credential: fc.oneof(
        { weight: 6, arbitrary: fc.constant([`Authorization: Bearer ${key}`]) },
        { weight: 1, arbitrary: fc.constant([`X-API-Key: ${key}`]) },
        { weight: 2, arbitrary: fc.constant([]) },
      ),
      type: fc.oneof({ weight: 9, arbitrary: fc.constant(['Content-Type: application/json']) }, fc.constant([])),
      headers: fc.oneof(
        { weight: 3, arbitrary: fc.constant([]) },
        { weight: 2, arbitrary: fc.array(header, { minLength: 1, maxLength: 3 }) },
      ),
      payload: framed,
      bodiless: fc.boolean(),
    })
    .map(
      ({
        start: [method, target],
        version,
        host,
        credential,
        type,
        headers,
        payload: [framing, content],
        bodiless,
      }) => {
        const without = bodiless && (method === 'GET' || method === 'HEAD' || method === 'DELETE');
        const lines = [`${method} ${target} ${version}`, ...host, ...credential, ...type, ...headers];
        const head = [...lines, ...(without ? [] : framing), '', ''].join('\r\n');
        return { method, bytes: Buffer.concat([bytesOf(head), ...(without ? [] : [content])]) };
      },
    );

/** Damages to the bytes of a request. */
const damage = fc.oneof(
  { weight: 6, arbitrary: fc.constant((bytes: Buffer) => bytes) },
  {
    weight: 2,
    arbitrary: fc
      .array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 })
      .map((flips) => (bytes: Buffer) => {
        const changed = Buffer.from(bytes);
        for (const [at, value] of flips) if (changed.length > 0) changed[at % changed.length] = value;
        return changed;
      }),
  },
  { weight: 1, arbitrary: fc.nat().map((at) => (bytes: Buffer) => bytes.subarray(0, at % (bytes.length + 1))) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.nat(), fc.nat(50)).map(([at, length]) => (bytes: Buffer) => {
      const from = at % (bytes.length + 1);
      return Buffer.concat([bytes.subarray(0, from + length), bytes.subarray(from)]);
    }),
  },
);

const garbage = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  text(['GARBAGE\r\n\r\n', '\r\n\r\n', '\x16\x03\x01\x02\0\x01\0\x01', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']).map(
    (bytes) => Buffer.from(bytes, 'latin1'),
  ),
);

const single = (key: string) =>
  fc
    .tuple(oneRequest(key), damage)
    .map(([{ method, bytes }, harm]) => ({ head: method === 'HEAD', bytes: harm(bytes) }));
/** Without HEAD, because it would be unknown which response has no body. */
const pipelined = (key: string) => {
  const withBody = oneRequest(key).filter(({ method }) => method !== 'HEAD');
  const part = fc.oneof(
    { weight: 4, arbitrary: withBody.map(({ bytes }) => bytes) },
    { weight: 1, arbitrary: garbage },
  );
  return fc.array(part, { minLength: 2, maxLength: 4 }).map((parts) => ({ head: false, bytes: Buffer.concat(parts) }));
};

/** Attempts on a gateway with this key. */
export const attempts = (key: string): Arbitrary<Attempt> =>
  fc
    .tuple(
      fc.oneof(
        { weight: 8, arbitrary: single(key) },
        { weight: 1, arbitrary: pipelined(key) },
        { weight: 1, arbitrary: garbage.map((bytes) => ({ head: false, bytes })) },
      ),
      fc.nat(),
      fc.oneof({ weight: 8, arbitrary: text(['wait']) }, text(['half-close', 'vanish'])) as Arbitrary<Attempt['then']>,
    )
    .map(([{ head, bytes }, at, then]) => ({ head, bytes, cut: at % (bytes.length + 1), then }));
