#!/usr/bin/env bash
# spring-ai-pgvector-store 2.0.1 (Maven), on PGlite 0.5.14 with pgvector (npm), seen 2026-11-27.
# Expect: a search for nine of four documents returns four, above all with similarityThresholdAll(). (guess: negative cosines are hidden,
# 55 %; similarityThresholdAll shows all, 90 %)
# Happens: it returns what is nearer than a right angle, two of four, with similarityThresholdAll() too: its threshold of 0 is compared with
# <, and no smaller one is allowed. Each hit's metadata have a `distance`, which is stored if the hit is written back.
# Who is bitten: exports and counts by search, small stores, tests with few vectors that are far apart.
# Do: list with SQL, and drop `distance` before you write a hit.
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
<dependency><groupId>org.springframework.ai</groupId><artifactId>spring-ai-pgvector-store</artifactId><version>2.0.1</version></dependency>
<dependency><groupId>org.postgresql</groupId><artifactId>postgresql</artifactId><version>42.7.13</version></dependency>
</dependencies></project>
POM
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib
cat > Seen.java <<'PROGRAM'
import org.springframework.ai.document.Document; import org.springframework.ai.embedding.*; import org.springframework.ai.vectorstore.*; import org.springframework.ai.vectorstore.pgvector.PgVectorStore;
import org.springframework.jdbc.core.JdbcTemplate; import java.util.*;
class Seen {
  public static void main(String[] args) {
    var source = new org.postgresql.ds.PGSimpleDataSource(); source.setUrl("jdbc:postgresql://" + args[0] + "/postgres?sslmode=disable&prepareThreshold=0"); source.setUser("postgres"); source.setPassword("x");
    var vectors = Map.of("same", new float[] {1, 0}, "near", new float[] {.9f, .1f}, "across", new float[] {0, 1}, "opposite", new float[] {-1, 0});
    var metadata = Map.<String, Map<String, Object>>of("same", Map.of("topic", "x", "n", 1), "near", Map.of("topic", "y", "n", 10), "across", Map.of("topic", "x"), "opposite", Map.of("n", 2));
    var model = new AbstractEmbeddingModel() {
      public EmbeddingResponse call(EmbeddingRequest r) { return new EmbeddingResponse(r.getInstructions().stream().map(t -> new Embedding(vectors.get(t), 0)).toList()); }
      public float[] embed(Document d) { return vectors.get(d.getText()); }
    };
    var sql = new JdbcTemplate(source); sql.execute("create table vector_store (id uuid primary key, content text, metadata json, embedding vector(2))");
    var store = PgVectorStore.builder(sql, model).dimensions(2).build();
    for (var text : vectors.keySet()) store.add(List.of(new Document(new UUID(0, text.hashCode()).toString(), text, metadata.get(text))));
    var nine = SearchRequest.builder().query("same").topK(9).build();
    for (var asked : List.of(nine, SearchRequest.from(nine).similarityThresholdAll().build(), SearchRequest.from(nine).filterExpression("topic == 'x'").build()))
      System.out.println(asked.getSimilarityThreshold() + " " + asked.getFilterExpression() + " | " + store.similaritySearch(asked).stream().map(Document::getText).toList());
    var hit = store.similaritySearch(nine).get(0);
    store.add(List.of(hit));
    System.out.println("written back | " + sql.queryForObject("select metadata::jsonb from vector_store where content = 'same'", String.class));
    try { SearchRequest.from(nine).similarityThreshold(-1).build(); } catch (IllegalArgumentException e) { System.out.println("-1 | " + e.getMessage()); }
  }
}
PROGRAM
java -cp 'lib/*' Seen.java "$(cat address)" > seen 2> errors
cat seen
diff seen - <<'EXPECTED'
0.0 null | [same, near]
0.0 null | [same, near]
0.0 Expression[type=EQ, left=Key[key=topic], right=Value[value=x]] | [same]
written back | {"n": 1, "topic": "x", "distance": 0.0}
-1 | Similarity threshold must be in [0,1] range.
EXPECTED
