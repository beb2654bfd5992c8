import com.google.gson.*;
import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.util.*;
import org.springframework.ai.document.Document;
import org.springframework.ai.embedding.*;
import org.springframework.ai.vectorstore.SearchRequest;
import org.springframework.ai.vectorstore.filter.FilterExpressionBuilder;
import org.springframework.ai.vectorstore.pgvector.PgVectorStore;
import org.springframework.ai.vectorstore.pgvector.PgVectorStore.*;
import org.springframework.jdbc.core.JdbcTemplate;

/** PgVectorStore of Spring AI. After its first answer the program takes commands, a line each, and answers each with a line (together.ts). */
class SpringAi {
  static final Gson JSON = new GsonBuilder().setObjectToNumberStrategy(ToNumberPolicy.LONG_OR_DOUBLE).create();
  static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  static float[] vector(String text) {
    var body = JSON.toJson(Map.of("model", "eight", "input", List.of(text)));
    var request = HttpRequest.newBuilder(URI.create(System.getenv("OPENAI_BASE_URL") + "/embeddings"))
        .header("content-type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build();
    try {
      var answer = JsonParser.parseString(HTTP.send(request, HttpResponse.BodyHandlers.ofString()).body());
      return JSON.fromJson(answer.getAsJsonObject().getAsJsonArray("data").get(0).getAsJsonObject().get("embedding"), float[].class);
    } catch (IOException | InterruptedException e) {
      throw new RuntimeException(e);
    }
  }

  static final AbstractEmbeddingModel MODEL = new AbstractEmbeddingModel() {
    public EmbeddingResponse call(EmbeddingRequest request) {
      return new EmbeddingResponse(request.getInstructions().stream().map(text -> new Embedding(vector(text), 0)).toList());
    }
    public float[] embed(Document document) {
      return vector(document.getText());
    }
  };

  static PgVectorStore open(JdbcTemplate sql, PgDistanceType distance) throws Exception {
    var first = distance == PgDistanceType.COSINE_DISTANCE;
    var store = PgVectorStore.builder(sql, MODEL).dimensions(8).distanceType(distance).indexType(PgIndexType.HNSW).initializeSchema(first).build();
    store.afterPropertiesSet();
    return store;
  }

  static List<Document> search(PgVectorStore store, String text, String user) {
    var filter = new FilterExpressionBuilder().eq("user_id", user).build();
    return store.similaritySearch(SearchRequest.builder().query(text).topK(10).filterExpression(filter).build());
  }

  static String add(PgVectorStore store, String id, String text, Map<String, Object> metadata) {
    store.add(List.of(new Document(id, text, metadata)));
    return id;
  }

  @SuppressWarnings("unchecked")
  public static void main(String[] args) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    var out = new PrintStream(System.out, true, "UTF-8");
    var given = JSON.fromJson(in.readLine(), Map.class);
    var url = URI.create(System.getenv("DATABASE_URL"));
    var source = new org.postgresql.ds.PGSimpleDataSource();
    source.setUrl("jdbc:postgresql://" + url.getHost() + ":" + url.getPort() + url.getPath());
    source.setUser(url.getUserInfo().split(":")[0]);
    source.setPassword("none");
    var sql = new JdbcTemplate(source);
    var stores = new LinkedHashMap<String, PgVectorStore>();
    stores.put("cosine", open(sql, PgDistanceType.COSINE_DISTANCE));
    stores.put("l2", open(sql, PgDistanceType.EUCLIDEAN_DISTANCE));
    stores.put("inner product", open(sql, PgDistanceType.NEGATIVE_INNER_PRODUCT));
    var store = stores.get("cosine");
    Map<String, String> ids = new LinkedHashMap<>(), keys = new HashMap<>();
    List<Object> refused = new ArrayList<>(), searches = new ArrayList<>();
    for (var each : (List<Map<String, Object>>) given.get("memories")) {
      var key = (String) each.get("key");
      keys.put((String) each.get("text"), key);
      for (var metadata : (List<Map<String, Object>>) each.get("attempts")) {
        try {
          ids.put(key, add(store, UUID.randomUUID().toString(), (String) each.get("text"), metadata));
          break;
        } catch (RuntimeException e) {
          refused.add(key + ": " + e.getMessage());
        }
      }
    }
    for (var search : (List<Map<String, Object>>) given.get("searches")) {
      for (var metric : stores.keySet()) {
        var hits = search(stores.get(metric), (String) search.get("text"), (String) search.get("user_id"));
        var said = new LinkedHashMap<String, Object>(search);
        said.put("metric", metric);
        said.put("found", hits.stream().map(hit -> keys.get(hit.getText())).toList());
        said.put("scores", hits.stream().map(Document::getScore).toList());
        searches.add(said);
      }
    }
    out.println(JSON.toJson(Map.of("collection", "public.vector_store", "ids", ids, "searches", searches, "refused", refused)));
    for (var line = in.readLine(); line != null; line = in.readLine()) {
      var command = JSON.fromJson(line, List.class);
      var arguments = (List<Object>) command.get(1);
      Map<String, Object> answer = new HashMap<>();
      try {
        answer.put("answer", switch ((String) command.get(0)) {
          case "add" -> add(store, UUID.randomUUID().toString(), (String) arguments.get(0), (Map<String, Object>) arguments.get(1));
          case "change" -> add(store, (String) arguments.get(0), (String) arguments.get(1), (Map<String, Object>) arguments.get(2));
          case "search" -> search(store, (String) arguments.get(0), (String) arguments.get(1)).stream().map(hit -> List.of(hit.getText(), hit.getScore())).toList();
          case "remove" -> {
            store.delete(List.of((String) arguments.get(0)));
            yield true;
          }
          default -> throw new IllegalArgumentException(line);
        });
      } catch (RuntimeException e) {
        answer.put("error", e.toString());
      }
      out.println(JSON.toJson(answer));
    }
  }
}
