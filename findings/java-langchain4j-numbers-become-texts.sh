#!/usr/bin/env bash
# langchain4j-pgvector 1.13.0-beta23 (Maven), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27. 0.36.2 stores the same texts.
# Expect: a number of the metadata is a number in the JSON column, and `isIn(5)` finds what `isEqualTo(5)` finds. (guess: a number, 80 %; equal, 85 %)
# Happens: every number is stored as a text, in JSON and in JSONB: `"stars": "5"`. Other programs that compare numbers there (jsonb containment, JSON
# paths, Spring AI) find nothing. isEqualTo reads the text as a number, isIn compares texts: of 5.0 and 5 isEqualTo(5.0) finds both, isIn(5.0) one.
# Who is bitten: tables that two programs share, moves to another library, dashboards with SQL.
# Do: cast in SQL, `(metadata->>'stars')::numeric`; no isIn with numbers.
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
    add("whole", Map.of("stars", 5));
    add("fraction", Map.of("stars", 5.0));
    try (var connection = source.getConnection(); var rows = connection.createStatement().executeQuery("select text, metadata->'stars', metadata::jsonb @> '{\"stars\": 5}', metadata::jsonb @? '$.stars ? (@ >= 5)' from notes order by text")) {
      while (rows.next()) System.out.println(rows.getString(1) + " | " + rows.getString(2) + " contained " + rows.getBoolean(3) + ", path " + rows.getBoolean(4));
    }
    seen("stars = 5.0", metadataKey("stars").isEqualTo(5.0));
    seen("stars in 5.0", metadataKey("stars").isIn(5.0));
    seen("stars in 5", metadataKey("stars").isIn(5));
  }
}
PROGRAM
java -cp 'lib/*' Seen.java "$(cat address)" > seen 2> errors
cat seen
diff seen - <<'EXPECTED'
fraction | "5.0" contained false, path false
whole | "5" contained false, path false
stars = 5.0 | [fraction, whole]
stars in 5.0 | [fraction]
stars in 5 | [whole]
EXPECTED
