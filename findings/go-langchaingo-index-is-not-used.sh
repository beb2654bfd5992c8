#!/usr/bin/env bash
# github.com/tmc/langchaingo v0.1.14 (Go 1.24), vectorstores/pgvector, on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: WithHNSWIndex makes the index that searches then use, and opening a store leaves its collection as it is. (no guess was written down before)
# Happens: the index is made, and no search can use it, with sequential scans turned off neither: each search first copies all rows of the right
# length, of every collection (`with … as materialized`). The option's distance changes only the index: searches measure the cosine.
# A store that is opened without WithCollectionMetadata sets the metadata of the collection to null.
# Who is bitten: tables that grow, inserts that pay for an index nobody reads, programs that keep settings in the collection's metadata.
# Do: leave WithHNSWIndex out, or search with SQL of your own; give the metadata at each opening.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --no-save --before=2026-11-28 @electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15 @electric-sql/pglite-socket@0.2.17
for package in @electric-sql/pglite @electric-sql/pglite-pgvector @electric-sql/pglite-socket; do node -p "const { name, version } = JSON.parse(fs.readFileSync('node_modules/$package/package.json')); name + ' ' + version"; done
cat > serve.mjs <<'PROGRAM'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
const db = await PGlite.create({ extensions: { vector } })
const server = new PGLiteSocketServer({ db, port: 0, maxConnections: 9 })
await server.start()
console.log(server.getServerConn())
PROGRAM
node serve.mjs > address & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until [ -s address ] || ! kill -0 $server; do sleep 0.1; done
cat > main.go <<'PROGRAM'
package main
import ("context"; "fmt"; "os"; "strings"; "github.com/jackc/pgx/v5"; "github.com/tmc/langchaingo/schema"; "github.com/tmc/langchaingo/vectorstores/pgvector")
type lengths struct{}
func (lengths) EmbedQuery(_ context.Context, t string) ([]float32, error) { return []float32{1, float32(len(t))}, nil }
func (l lengths) EmbedDocuments(c context.Context, ts []string) (all [][]float32, _ error) { for _, t := range ts { v, _ := l.EmbedQuery(c, t); all = append(all, v) }; return }
type recording struct { *pgx.Conn; sql string; values []any } // keeps the last query
func (r *recording) Query(c context.Context, sql string, values ...any) (pgx.Rows, error) { r.sql, r.values = sql, values; return r.Conn.Query(c, sql, values...) }
func must[T any](value T, err error) T { if err != nil { panic(err) }; return value }
func main() {
	c := context.Background()
	conn := &recording{Conn: must(pgx.Connect(c, "postgres://postgres:x@"+os.Args[1]+"/postgres?sslmode=disable&default_query_exec_mode=describe_exec"))}
	open := func(more ...pgvector.Option) pgvector.Store { return must(pgvector.New(c, append(more, pgvector.WithConn(conn), pgvector.WithEmbedder(lengths{}), pgvector.WithVectorDimensions(2), pgvector.WithHNSWIndex(16, 64, "vector_l2_ops"))...)) }
	store := open(pgvector.WithCollectionMetadata(map[string]any{"model": "small"}))
	must(store.AddDocuments(c, []schema.Document{{PageContent: "a"}, {PageContent: "bb"}, {PageContent: "ccc"}}))
	must(conn.Exec(c, "set enable_seqscan = off"))
	plan := func(sql string, values ...any) bool { return strings.Contains(strings.Join(must(pgx.CollectRows(must(conn.Conn.Query(c, "explain "+sql, values...)), pgx.RowTo[string])), "\n"), "embedding_hnsw") }
	fmt.Println("index:", must(pgx.CollectOneRow(must(conn.Conn.Query(c, "select indexdef from pg_indexes where indexname ~ 'hnsw'")), pgx.RowTo[string])))
	fmt.Println("plain SQL uses it:", plan("select document from langchain_pg_embedding order by embedding <-> '[1,1]' limit 2"))
	must(store.SimilaritySearch(c, "a", 2))
	fmt.Println("its search uses it:", plan(conn.sql, conn.values...), "measures by <=>:", strings.Contains(conn.sql, "<=>"))
	metadata := func() any { return must(pgx.CollectOneRow(must(conn.Conn.Query(c, "select cmetadata::text from langchain_pg_collection")), pgx.RowTo[*string])) }
	fmt.Println("metadata:", *metadata().(*string))
	open()
	fmt.Println("opened again:", metadata().(*string) == nil)
}
PROGRAM
printf 'module seen\ngo 1.24.4\nrequire (\n\tgithub.com/tmc/langchaingo v0.1.14\n\tgithub.com/jackc/pgx/v5 v5.7.2\n)\n' > go.mod
GOFLAGS=-mod=mod go run . "$(cat address)" > seen
cat seen
diff seen - <<'EXPECTED'
index: CREATE INDEX langchain_pg_embedding_embedding_hnsw ON public.langchain_pg_embedding USING hnsw (embedding vector_l2_ops) WITH (m='16', ef_construction='64')
plain SQL uses it: true
its search uses it: false measures by <=>: true
metadata: {"model":"small"}
opened again: true
EXPECTED
