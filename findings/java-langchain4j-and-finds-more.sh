#!/usr/bin/env bash
# langchain4j-pgvector 1.13.0-beta23 (Maven), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: `topic = food and year != 2024` finds documents about food. (no guess was written down before)
# Happens: it finds documents of every topic whose year is another one. "Not equal" and "not in" become `a is null or a != b`, and `and` writes its
# parts without brackets, so the `or` splits the whole condition. removeAll deletes by it. The other order of the parts finds others again.
# Nothing says so. `or`, `not`, and the in-memory store are right.
# Who is bitten: filters of one kind or owner with an exception, deletes by them.
# Do: say "not equal" as `not(… isEqualTo …)`, which has brackets (documents without the key are then not found).
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
<dependency><groupId>dev.langchain4j</groupId><artifactId>langchain4j-pgvector</artifactId><version>1.13.0-beta23</version></dependency>
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
  static void add(String text, Map<String, Object> metadata) { store.add(Embedding.from(new float[] {1, text.length()}), TextSegment.from(text, Metadata.from(metadata))); }
  static void seen(String label, Filter filter) {
    try { System.out.println(label + " | " + store.search(EmbeddingSearchRequest.builder().queryEmbedding(Embedding.from(new float[] {1, 0})).maxResults(9).filter(filter).build()).matches().stream().map(m -> m.embedded().text()).sorted().toList()); }
    catch (RuntimeException e) { System.out.println(label + " | " + e.getMessage()); }
  }
  public static void main(String[] args) throws Exception {
    var source = new org.postgresql.ds.PGSimpleDataSource(); source.setUrl("jdbc:postgresql://" + args[0] + "/postgres?sslmode=disable&prepareThreshold=0"); source.setUser("postgres"); source.setPassword("x");
    store = PgVectorEmbeddingStore.datasourceBuilder().datasource(source).table("notes").dimension(2).build();
    add("soup", Map.of("topic", "food", "year", 2024));
    add("tea", Map.of("topic", "food", "year", 2025));
    add("ferry", Map.of("topic", "travel", "year", 2025));
    add("train", Map.of("topic", "travel"));
    Filter food = metadataKey("topic").isEqualTo("food"), not2024 = metadataKey("year").isNotEqualTo(2024);
    seen("food and year != 2024", food.and(not2024));
    seen("year != 2024 and food", not2024.and(food));
    seen("food and year not in 2024", food.and(metadataKey("year").isNotIn(2024)));
    seen("food and not(year = 2024)", food.and(Filter.not(metadataKey("year").isEqualTo(2024))));
    store.removeAll(food.and(not2024));
    seen("left after removeAll(food and year != 2024)", null);
  }
}
PROGRAM
java -cp 'lib/*' Seen.java "$(cat address)" > seen 2> errors
cat seen
diff seen - <<'EXPECTED'
food and year != 2024 | [ferry, tea]
year != 2024 and food | [tea, train]
food and year not in 2024 | [ferry, tea]
food and not(year = 2024) | [tea]
left after removeAll(food and year != 2024) | [soup, train]
EXPECTED
