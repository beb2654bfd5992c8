#!/usr/bin/env bash
# github.com/tmc/langchaingo v0.1.7 and v0.1.14 (Go 1.24), vectorstores/pgvector, on PGlite 0.5.14 with pgvector (npm), seen 2026-11-28.
# Expect: an update of a patch version keeps what `Score` means. (no guess was written down before; it was that the score is 1 - distance)
# Happens: in v0.1.7 Score is the distance, the nearest document has 0; in v0.1.14 it is 1 - distance, the nearest has 1. The order, the SQL of the
# threshold and the tables stay, so nothing fails: `if doc.Score < 0.3` keeps the nearest before the update and the farthest after it.
# Who is bitten: programs that compare scores or merge hits of several stores.
# Do: use vectorstores.WithScoreThreshold, which means the same in both; test what the score of an equal text is.
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
import ("context"; "fmt"; "os"; "github.com/tmc/langchaingo/schema"; "github.com/tmc/langchaingo/vectorstores"; "github.com/tmc/langchaingo/vectorstores/pgvector")
var vectors = map[string][]float32{"same": {1, 0}, "near": {3, 4}, "across": {0, 1}}
type known struct{}
func (known) EmbedQuery(_ context.Context, t string) ([]float32, error) { return vectors[t], nil }
func (known) EmbedDocuments(_ context.Context, ts []string) (all [][]float32, _ error) { for _, t := range ts { all = append(all, vectors[t]) }; return }
func must[T any](value T, err error) T { if err != nil { panic(err) }; return value }
func main() {
	c := context.Background()
	store := must(pgvector.New(c, pgvector.WithConnectionURL("postgres://postgres:x@"+os.Args[1]+"/postgres?sslmode=disable&default_query_exec_mode=describe_exec"), pgvector.WithEmbedder(known{}), pgvector.WithPreDeleteCollection(true)))
	must(store.AddDocuments(c, []schema.Document{{PageContent: "same"}, {PageContent: "near"}, {PageContent: "across"}}))
	for label, options := range map[string][]vectorstores.Option{"all": {}, "threshold 0.5": {vectorstores.WithScoreThreshold(0.5)}} {
		fmt.Print(os.Args[2], " ", label, " |")
		for _, hit := range must(store.SimilaritySearch(c, "same", 9, options...)) { fmt.Printf(" %s %.1f", hit.PageContent, hit.Score) }
		fmt.Println()
	}
}
PROGRAM
for version in v0.1.7 v0.1.14; do
  printf 'module seen\ngo 1.24.4\nrequire (\n\tgithub.com/tmc/langchaingo %s\n\tgithub.com/jackc/pgx/v5 v5.7.2\n)\n' "$version" > go.mod
  rm -f go.sum
  GOFLAGS=-mod=mod go run . "$(cat address)" "$version"
done | sort > seen
cat seen
diff seen - <<'EXPECTED'
v0.1.14 all | same 1.0 near 0.6 across 0.0
v0.1.14 threshold 0.5 | same 1.0 near 0.6
v0.1.7 all | same 0.0 near 0.4 across 1.0
v0.1.7 threshold 0.5 | same 0.0 near 0.4
EXPECTED
