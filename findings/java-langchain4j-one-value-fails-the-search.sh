#!/usr/bin/env bash
# langchain4j-pgvector 1.11.0-beta19 (Maven), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: a value of another form is no match, and the others are found; a document with a zero vector is found last. (guess: no match, 60 %;
# last, 60 %)
# Happens: one 9.5 beside integers fails every filter with a whole number, for all. A zero vector is stored and never found, without any
# filter. `isNotEqualTo` finds documents without the key, so removeAll with it removes them, where Spring AI's `!=` leaves them.
# Who is bitten: metadata of several programs, embedders that answer zeros, deletes by "not".
# Do: one type per key, numbers as doubles in filters; name what shall be removed.
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
await db.exec('create extension vector')
const server = new PGLiteSocketServer({ db, port: 0, maxConnections: 9 })
await server.start()
console.log(server.getServerConn())
PROGRAM
node serve.mjs > address & server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
until [ -s address ] || ! kill -0 $server; do sleep 0.1; done
cat > pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>dev.langchain4j</groupId><artifactId>langchain4j-pgvector</artifactId><version>1.11.0-beta19</version></dependency>
<dependency><groupId>org.postgresql</groupId><artifactId>postgresql</artifactId><version>42.7.13</version></dependency>
</dependencies></project>
POM
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib
cat > Seen.java <<'PROGRAM'
import dev.langchain4j.data.document.Metadata; import dev.langchain4j.data.embedding.Embedding; import dev.langchain4j.data.segment.TextSegment; import dev.langchain4j.store.embedding.*;
import dev.langchain4j.store.embedding.filter.Filter; import dev.langchain4j.store.embedding.pgvector.PgVectorEmbeddingStore; import java.util.*;
import static dev.langchain4j.store.embedding.filter.MetadataFilterBuilder.metadataKey;
class Seen {
  static PgVectorEmbeddingStore store;
  static void add(String text, float[] vector, Map<String, Object> metadata) { store.addAll(List.of(new UUID(0, text.hashCode()).toString()), List.of(Embedding.from(vector)), List.of(TextSegment.from(text, Metadata.from(metadata)))); }
  static void seen(String label, Filter filter) {
    try { System.out.println(label + " | " + store.search(EmbeddingSearchRequest.builder().queryEmbedding(Embedding.from(new float[] {1, 0})).maxResults(9).filter(filter).build()).matches().stream().map(m -> m.embedded().text()).toList()); }
    catch (RuntimeException e) { System.out.println(label + " | " + e.getMessage()); }
  }
  public static void main(String[] args) {
    var source = new org.postgresql.ds.PGSimpleDataSource(); source.setUrl("jdbc:postgresql://" + args[0] + "/postgres?sslmode=disable&prepareThreshold=0"); source.setUser("postgres"); source.setPassword("x");
    var vectors = Map.of("same", new float[] {1, 0}, "near", new float[] {.9f, .1f}, "across", new float[] {0, 1}, "opposite", new float[] {-1, 0});
    var metadata = Map.<String, Map<String, Object>>of("same", Map.of("topic", "x", "n", 1), "near", Map.of("topic", "y", "n", 10), "across", Map.of("topic", "x"), "opposite", Map.of("n", 2));
    store = PgVectorEmbeddingStore.datasourceBuilder().datasource(source).table("notes").dimension(2).build();
    for (var text : vectors.keySet()) add(text, vectors.get(text), metadata.get(text));
    Filter above = metadataKey("n").isGreaterThan(1), not = metadataKey("topic").isNotEqualTo("x");
    seen("n > 1", above);
    add("9.5", new float[] {.8f, .2f}, Map.of("n", 9.5));
    seen("n > 1 beside 9.5", above);
    seen("n > 1.0 beside 9.5", metadataKey("n").isGreaterThan(1.0));
    add("zero", new float[] {0, 0}, Map.of("topic", "x"));
    seen("all, with a zero vector", null);
    seen("topic != x", not);
    store.removeAll(not);
    seen("left after removeAll(topic != x)", null);
  }
}
PROGRAM
java -cp 'lib/*' Seen.java "$(cat address)" > seen 2> errors
cat seen
diff seen - <<'EXPECTED'
n > 1 | [near, opposite]
n > 1 beside 9.5 | org.postgresql.util.PSQLException: ERROR: invalid input syntax for type integer: "9.5"
n > 1.0 beside 9.5 | [near, 9.5, opposite]
all, with a zero vector | [same, near, 9.5, across, opposite]
topic != x | [near, 9.5, opposite]
left after removeAll(topic != x) | [same, across]
EXPECTED
