import static dev.langchain4j.store.embedding.filter.MetadataFilterBuilder.metadataKey;

import com.google.gson.*;
import dev.langchain4j.data.document.Metadata;
import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.store.embedding.*;
import dev.langchain4j.store.embedding.pgvector.*;
import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.util.*;

/** PgVectorEmbeddingStore of LangChain4j. After its first answer the program takes commands, a line each, and answers each with a line (together.ts). */
class Langchain4j {
  static final Gson JSON = new GsonBuilder().setObjectToNumberStrategy(ToNumberPolicy.LONG_OR_DOUBLE).create();
  static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  static PgVectorEmbeddingStore store;

  static Embedding vector(String text) throws Exception {
    var body = JSON.toJson(Map.of("model", "eight", "input", List.of(text)));
    var request = HttpRequest.newBuilder(URI.create(System.getenv("OPENAI_BASE_URL") + "/embeddings"))
        .header("content-type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build();
    var answer = JsonParser.parseString(HTTP.send(request, HttpResponse.BodyHandlers.ofString()).body());
    return Embedding.from(JSON.fromJson(answer.getAsJsonObject().getAsJsonArray("data").get(0).getAsJsonObject().get("embedding"), float[].class));
  }

  static List<EmbeddingMatch<TextSegment>> search(String text, String user) throws Exception {
    var filter = metadataKey("user_id").isEqualTo(user);
    return store.search(EmbeddingSearchRequest.builder().queryEmbedding(vector(text)).maxResults(10).filter(filter).build()).matches();
  }

  static String add(String id, String text, Map<String, Object> metadata) throws Exception {
    var segment = TextSegment.from(text, Metadata.from(metadata));
    if (id == null) return store.add(vector(text), segment);
    // 0.36 has no such method.
    PgVectorEmbeddingStore.class.getMethod("addAll", List.class, List.class, List.class).invoke(store, List.of(id), List.of(vector(text)), List.of(segment));
    return id;
  }

  @SuppressWarnings("unchecked")
  public static void main(String[] args) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    var out = new PrintStream(System.out, true, "UTF-8");
    var given = JSON.fromJson(in.readLine(), Map.class);
    var options = JSON.fromJson(System.getenv("OPTIONS"), Map.class);
    var url = URI.create(System.getenv("DATABASE_URL"));
    var builder = PgVectorEmbeddingStore.builder().host(url.getHost()).port(url.getPort()).database(url.getPath().substring(1))
        .user(url.getUserInfo().split(":")[0]).password("none").table("notes").dimension(8);
    if (options.containsKey("jsonb"))
      builder.metadataStorageConfig(DefaultMetadataStorageConfig.builder().storageMode(MetadataStorageMode.COMBINED_JSONB)
          .columnDefinitions(List.of("metadata JSONB NULL")).build());
    if (options.containsKey("columns"))
      builder.metadataStorageConfig(DefaultMetadataStorageConfig.builder().storageMode(MetadataStorageMode.COLUMN_PER_KEY)
          .columnDefinitions(List.of("user_id text null", "topic text null", "stars double precision null")).build());
    store = builder.build();
    Map<String, String> ids = new LinkedHashMap<>(), keys = new HashMap<>();
    List<Object> refused = new ArrayList<>(), searches = new ArrayList<>();
    for (var each : (List<Map<String, Object>>) given.get("memories")) {
      var key = (String) each.get("key");
      keys.put((String) each.get("text"), key);
      for (var metadata : (List<Map<String, Object>>) each.get("attempts")) {
        try {
          ids.put(key, add(null, (String) each.get("text"), metadata));
          break;
        } catch (RuntimeException e) {
          refused.add(key + ": " + e.getMessage());
        }
      }
    }
    for (var search : (List<Map<String, Object>>) given.get("searches")) {
      var hits = search((String) search.get("text"), (String) search.get("user_id"));
      var said = new LinkedHashMap<String, Object>(search);
      said.put("metric", "cosine");
      said.put("found", hits.stream().map(hit -> keys.get(hit.embedded().text())).toList());
      said.put("scores", hits.stream().map(EmbeddingMatch::score).toList());
      searches.add(said);
    }
    out.println(JSON.toJson(Map.of("collection", "public.notes", "ids", ids, "searches", searches, "refused", refused)));
    for (var line = in.readLine(); line != null; line = in.readLine()) {
      var command = JSON.fromJson(line, List.class);
      var arguments = (List<Object>) command.get(1);
      Map<String, Object> answer = new HashMap<>();
      try {
        answer.put("answer", switch ((String) command.get(0)) {
          case "add" -> add(null, (String) arguments.get(0), (Map<String, Object>) arguments.get(1));
          case "change" -> add((String) arguments.get(0), (String) arguments.get(1), (Map<String, Object>) arguments.get(2));
          case "search" -> search((String) arguments.get(0), (String) arguments.get(1)).stream().map(hit -> List.of(hit.embedded().text(), hit.score())).toList();
          case "remove" -> {
            store.removeAll(List.of((String) arguments.get(0)));
            yield true;
          }
          default -> throw new IllegalArgumentException(line);
        });
      } catch (Exception e) {
        answer.put("error", e.toString());
      }
      out.println(JSON.toJson(answer));
    }
  }
}
