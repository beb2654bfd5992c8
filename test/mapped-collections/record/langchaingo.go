package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/tmc/langchaingo/embeddings"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"
	"github.com/tmc/langchaingo/vectorstores/pgvector"
)

// The pgvector store of langchaingo. After its first answer the program takes commands, a line each, and answers each with a line (together.ts).

type memory struct {
	Key, Text string
	Attempts  []map[string]any
}

type search struct {
	User   string    `json:"user_id"`
	Text   string    `json:"text"`
	Metric string    `json:"metric"`
	Found  []string  `json:"found"`
	Scores []float32 `json:"scores"`
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx := context.Background()
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	in.Scan()
	var given struct {
		Memories []memory
		Searches []search
	}
	if err := json.Unmarshal(in.Bytes(), &given); err != nil {
		panic(err)
	}
	model := must(openai.New(openai.WithToken("none"), openai.WithEmbeddingModel("eight"), openai.WithBaseURL(os.Getenv("OPENAI_BASE_URL"))))
	conn := must(pgx.Connect(ctx, os.Getenv("DATABASE_URL")))
	store := must(pgvector.New(ctx, pgvector.WithConn(conn), pgvector.WithEmbedder(must(embeddings.NewEmbedder(model))),
		pgvector.WithCollectionName("notes"), pgvector.WithVectorDimensions(8), pgvector.WithHNSWIndex(16, 64, "vector_cosine_ops")))

	add := func(text string, metadata map[string]any) (string, error) {
		ids, err := store.AddDocuments(ctx, []schema.Document{{PageContent: text, Metadata: metadata}})
		if err != nil {
			return "", err
		}
		return ids[0], nil
	}
	find := func(text, user string) ([]schema.Document, error) {
		return store.SimilaritySearch(ctx, text, 10, vectorstores.WithFilters(map[string]any{"user_id": user}))
	}

	ids, keys, refused := map[string]string{}, map[string]string{}, []string{}
	for _, each := range given.Memories {
		keys[each.Text] = each.Key
		for _, metadata := range each.Attempts {
			id, err := add(each.Text, metadata)
			if err == nil {
				ids[each.Key] = id
				break
			}
			refused = append(refused, each.Key+": "+err.Error())
		}
	}
	for i := range given.Searches {
		each := &given.Searches[i]
		each.Metric, each.Found, each.Scores = "cosine", []string{}, []float32{}
		for _, hit := range must(find(each.Text, each.User)) {
			each.Found, each.Scores = append(each.Found, keys[hit.PageContent]), append(each.Scores, hit.Score)
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.Encode(map[string]any{"collection": "public.langchain_pg_embedding", "ids": ids, "searches": given.Searches, "refused": refused})

	for in.Scan() {
		var command [2]json.RawMessage
		var name string
		var arguments []any
		json.Unmarshal(in.Bytes(), &command)
		json.Unmarshal(command[0], &name)
		json.Unmarshal(command[1], &arguments)
		var answer any
		err := errors.New(name + " is not offered")
		switch name {
		case "add":
			answer, err = add(arguments[0].(string), arguments[1].(map[string]any))
		case "search":
			var hits []schema.Document
			hits, err = find(arguments[0].(string), arguments[1].(string))
			found := []any{}
			for _, hit := range hits {
				found = append(found, []any{hit.PageContent, hit.Score})
			}
			answer = found
		}
		if err != nil {
			out.Encode(map[string]any{"error": fmt.Sprint(err)})
		} else {
			out.Encode(map[string]any{"answer": answer})
		}
	}
}
