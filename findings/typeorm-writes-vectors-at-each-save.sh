#!/usr/bin/env bash
# typeorm 1.1.1 (npm) with `vector` columns, on PGlite 0.5.14 with pgvector, seen 2026-11-27.
# Expect: save of an entity that was loaded writes the columns that were changed; an unchanged one writes nothing. (guess: nothing, 80 %)
# Happens: a vector always counts as changed: each save writes all vectors again and sets the update date, also of
# an entity that nobody touched. Who loaded it before a new embedding was stored puts the old one back by saving a title.
# Who is bitten: tables that are embedded in the background; feeds of what was "updated since".
# Do: select: false on vector columns, or update() with the columns that you mean.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15 @electric-sql/pglite-socket@0.2.17 typeorm@1.1.1 reflect-metadata@0.2.2 pg@8.23.1 --legacy-peer-deps
for package in typeorm @electric-sql/pglite; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
cat > serve.mjs <<'PROGRAM'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
const db = await PGlite.create({ extensions: { vector } })
await db.exec('create extension vector')
const server = new PGLiteSocketServer({ db, port: 0, maxConnections: 9 })
await server.start()
console.log(server.getServerConn())
PROGRAM
node serve.mjs > address & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until [ -s address ] || ! kill -0 $server; do sleep 0.1; done
node --input-type=module - > seen <<'PROGRAM'
import 'reflect-metadata'
import { readFileSync } from 'node:fs'
import { DataSource, EntitySchema } from 'typeorm'
const Note = new EntitySchema({ name: 'Note', columns: {
  id: { type: 'integer', primary: true }, title: { type: 'text' }, v: { type: 'vector', length: 2, nullable: true }, changed: { type: 'timestamptz', updateDate: true } } })
const source = new DataSource({ type: 'postgres', url: `postgres://postgres@${readFileSync('address', 'utf8').trim()}/postgres`, entities: [Note], synchronize: true, poolSize: 1 })
await source.initialize()
const notes = source.getRepository('Note')
const row = async () => (await source.query('select title, v::text, xmin::text as version from note where id = 1'))[0]
await notes.save({ id: 1, title: 'old', v: [1, 0] })
for (const [label, id] of [['with a vector', 1], ['without one', 2]]) {
  if (id === 2) await source.query('update note set v = null')
  const before = await row()
  const updated = (await notes.findOneBy({ id: 1 })).changed
  await notes.save(await notes.findOneBy({ id: 1 }))
  const { changed } = await notes.findOneBy({ id: 1 })
  console.log('save of an unchanged entity', label, '| written:', (await row()).version !== before.version, '| update date moved:', +changed !== +updated)
}
await source.query("update note set v = '[1,0]'")
const loaded = await notes.findOneBy({ id: 1 })
await source.query("update note set v = '[0,1]'")
loaded.title = 'new'
await notes.save(loaded)
const { title, v } = await row()
console.log('new embedding [0,1], then a title saved:', title, v)
process.exit(0)
PROGRAM
cat seen
diff seen - <<'EXPECTED'
save of an unchanged entity with a vector | written: true | update date moved: true
save of an unchanged entity without one | written: false | update date moved: false
new embedding [0,1], then a title saved: new [1,0]
EXPECTED
