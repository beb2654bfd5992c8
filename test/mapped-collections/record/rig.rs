use rig_core::{
    Embed,
    embeddings::EmbeddingsBuilder,
    providers::openai::OpenAI,
    vector_store::{
        InsertDocuments, VectorStoreIndex,
        request::{SearchFilter, VectorSearchRequest},
    },
};
use rig_postgres::{PgSearchFilter, PgVectorDistanceFunction, PostgresVectorStore};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sqlx::{PgPool, Row};
use std::{collections::HashMap, error::Error, io::BufRead};

// PostgresVectorStore of rig, with the table of its README. After its first answer the program takes commands, a line each, and answers each with a
// line (together.ts).

#[derive(Embed, Serialize, Deserialize, Clone, Debug)]
struct Note {
    #[embed]
    text: String,
    #[serde(flatten)]
    metadata: Map<String, Value>,
}

struct Store {
    pool: PgPool,
    model: rig_core::DynModel<rig_core::operation::Embedding>,
}

impl Store {
    fn by(&self, distance: PgVectorDistanceFunction) -> PostgresVectorStore {
        PostgresVectorStore::new(self.model.clone(), self.pool.clone(), None, distance)
    }

    async fn add(&self, text: &str, metadata: &Map<String, Value>) -> Result<String, Box<dyn Error>> {
        let note = Note { text: text.to_owned(), metadata: metadata.clone() };
        let documents = EmbeddingsBuilder::new(self.model.clone()).documents(vec![note])?.build().await?;
        self.by(PgVectorDistanceFunction::Cosine).insert_documents(documents).await?;
        // It does not tell the id.
        let row = sqlx::query("select id::text from documents where embedded_text = $1").bind(text).fetch_one(&self.pool).await?;
        Ok(row.get(0))
    }

    async fn search(&self, distance: PgVectorDistanceFunction, text: &str, user: &str) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
        let of_user = PgSearchFilter::eq("document->>'user_id'", json!(user));
        let request = VectorSearchRequest::builder().query(text).samples(10).filter(of_user).build();
        let hits = self.by(distance).top_n::<Note>(request).await?;
        Ok(hits.into_iter().map(|hit| (hit.document.text, hit.score)).collect())
    }

    async fn run(&self, name: &str, arguments: &[Value]) -> Result<Value, Box<dyn Error>> {
        let text = |at: usize| arguments[at].as_str().unwrap_or_default();
        match name {
            "add" => Ok(json!(self.add(text(0), arguments[1].as_object().unwrap()).await?)),
            "search" => Ok(json!(self.search(PgVectorDistanceFunction::Cosine, text(0), text(1)).await?)),
            _ => Err(format!("{name} is not offered").into()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut lines = std::io::stdin().lock().lines();
    let given: Value = serde_json::from_str(&lines.next().unwrap()?)?;
    let pool = PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    sqlx::raw_sql(
        "create table documents (
          id uuid DEFAULT gen_random_uuid(), -- we can have repeated entries
          document jsonb NOT NULL,
          embedded_text text NOT NULL,
          embedding vector(8)
        );
        create index if not exists document_embeddings_idx on documents using hnsw(embedding vector_cosine_ops);",
    )
    .execute(&pool)
    .await?;
    let model = OpenAI::from_env()?.embedding("eight", Some(8)).erase();
    let store = Store { pool, model };

    let (mut ids, mut keys, mut refused, mut searches) = (Map::new(), HashMap::new(), vec![], vec![]);
    for each in given["memories"].as_array().unwrap() {
        let (key, text) = (each["key"].as_str().unwrap(), each["text"].as_str().unwrap());
        keys.insert(text, key);
        for metadata in each["attempts"].as_array().unwrap() {
            match store.add(text, metadata.as_object().unwrap()).await {
                Ok(id) => {
                    ids.insert(key.to_owned(), json!(id));
                    break;
                }
                Err(error) => refused.push(format!("{key}: {error}")),
            }
        }
    }
    for search in given["searches"].as_array().unwrap() {
        let (text, user) = (search["text"].as_str().unwrap(), search["user_id"].as_str().unwrap());
        for (metric, distance) in [
            ("cosine", PgVectorDistanceFunction::Cosine),
            ("l2", PgVectorDistanceFunction::L2),
            ("inner product", PgVectorDistanceFunction::InnerProduct),
        ] {
            let hits = store.search(distance, text, user).await?;
            let found: Vec<_> = hits.iter().map(|(text, _)| keys[text.as_str()]).collect();
            let scores: Vec<_> = hits.iter().map(|(_, score)| score).collect();
            searches.push(json!({ "user_id": user, "text": text, "metric": metric, "found": found, "scores": scores }));
        }
    }
    println!("{}", json!({ "collection": "public.documents", "ids": ids, "searches": searches, "refused": refused }));
    for line in lines {
        let command: (String, Vec<Value>) = serde_json::from_str(&line?)?;
        let answer = match store.run(&command.0, &command.1).await {
            Ok(answer) => json!({ "answer": answer }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        println!("{answer}");
    }
    Ok(())
}
