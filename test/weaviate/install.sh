#!/usr/bin/env bash
# bash test/weaviate/install.sh folder: builds the server of Weaviate from its sources, which the Go module proxy has, into the folder.
# TEST_WEAVIATE_BIN=folder/weaviate-server names it for the tests. Needs Go 1.25.
set -euo pipefail
go version
GOBIN=$(realpath -m "$1") go install github.com/weaviate/weaviate/cmd/weaviate-server@v1.35.2
