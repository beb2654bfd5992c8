#!/usr/bin/env bash
# langchain4j 1.19.0 (InMemoryEmbeddingStore) and spring-ai-vector-store 2.0.1 (SimpleVectorStore), Maven, seen 2026-11-27.
# Expect: a record whose value has another type, or whose vector is zero, is not a match; other records are found as before.
# (guess: not a match, 70 %)
# Happens: one record with the text "1" under a key makes every filter that compares this key with a number throw, in both. In
# Spring AI one zero vector makes every search throw ("Vectors cannot have zero norm"). LangChain4j returns it with score 0.5,
# adds a second record under an id that exists, and reads 5000000000 with getInteger as 705032704.
# Who is bitten: metadata written by several programs, embedders that answer zeros: one record stops the search for all.
# Do: one type per key, no zero vectors, checked before the add.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies>
<dependency><groupId>dev.langchain4j</groupId><artifactId>langchain4j</artifactId><version>1.19.0</version></dependency>
<dependency><groupId>org.springframework.ai</groupId><artifactId>spring-ai-vector-store</artifactId><version>2.0.1</version></dependency>
</dependencies></project>
POM
mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=lib
cat > Seen.java <<'PROGRAM'
import dev.langchain4j.data.document.Metadata; import dev.langchain4j.data.segment.TextSegment; import dev.langchain4j.store.embedding.*;
import dev.langchain4j.store.embedding.filter.MetadataFilterBuilder; import dev.langchain4j.store.embedding.inmemory.InMemoryEmbeddingStore;
import org.springframework.ai.document.Document; import org.springframework.ai.embedding.*; import org.springframework.ai.vectorstore.*; import java.util.*; import java.util.concurrent.Callable;
class Seen {
  static void seen(String label, Callable<?> call) { try { System.out.println(label + " " + call.call()); } catch (Exception e) { System.out.println(label + " " + e.getClass().getSimpleName() + ": " + e.getMessage()); } }
  static float[] vector(String text) { return text.startsWith("zero") ? new float[] {0, 0} : new float[] {1, 0}; }
  public static void main(String[] args) {
    var store = new InMemoryEmbeddingStore<TextSegment>();
    var one = MetadataFilterBuilder.metadataKey("n").isEqualTo(1);
    Callable<?> search = () -> store.search(EmbeddingSearchRequest.builder().queryEmbedding(dev.langchain4j.data.embedding.Embedding.from(vector("q"))).maxResults(9).filter(one).build()).matches().stream().map(m -> m.embeddingId() + " " + m.score()).toList();
    for (var row : List.of(List.of("a", 1), List.of("a", 1), List.of("zero", 1)))
      store.addAll(List.of((String) row.get(0)), List.of(dev.langchain4j.data.embedding.Embedding.from(vector((String) row.get(0)))), List.of(TextSegment.from("t", Metadata.from(Map.of("n", row.get(1))))));
    seen("langchain4j n = 1:", search);
    store.addAll(List.of("b"), List.of(dev.langchain4j.data.embedding.Embedding.from(vector("b"))), List.of(TextSegment.from("t", Metadata.from(Map.of("n", "1")))));
    seen("langchain4j with a text:", search);
    seen("langchain4j getInteger:", () -> Metadata.from(Map.of("n", 5000000000L)).getInteger("n"));
    var model = new AbstractEmbeddingModel() {
      public EmbeddingResponse call(EmbeddingRequest r) { return new EmbeddingResponse(r.getInstructions().stream().map(t -> new Embedding(vector(t), 0)).toList()); }
      public float[] embed(Document d) { return vector(d.getText()); }
      public float[] embed(String t) { return vector(t); }
      public int dimensions() { return 2; }
    };
    var spring = SimpleVectorStore.builder(model).build();
    Callable<?> filtered = () -> spring.similaritySearch(SearchRequest.builder().query("q").filterExpression("n == 1").build()).stream().map(Document::getId).toList();
    spring.add(List.of(new Document("a", "t", Map.of("n", 1))));
    seen("Spring AI n == 1:", filtered);
    spring.add(List.of(new Document("b", "t", Map.of("n", "1"))));
    seen("Spring AI with a text:", filtered);
    spring.add(List.of(new Document("z", "zero", Map.of())));
    seen("Spring AI with a zero vector:", () -> spring.similaritySearch("q"));
  }
}
PROGRAM
java -cp 'lib/*' Seen.java > seen
ls lib | grep -E '^(langchain4j|spring-ai-vector-store)-[0-9]'
cat seen
diff seen - <<'EXPECTED'
langchain4j n = 1: [a 1.0, a 1.0, zero 0.5]
langchain4j with a text: IllegalArgumentException: Type mismatch: actual value of metadata key "n" (1) has type java.lang.String, while comparison value (1) has type java.lang.Integer
langchain4j getInteger: 705032704
Spring AI n == 1: [a]
Spring AI with a text: IllegalArgumentException: Cannot compare values of incompatible types java.lang.String and java.lang.Integer
Spring AI with a zero vector: IllegalArgumentException: Vectors cannot have zero norm
EXPECTED
