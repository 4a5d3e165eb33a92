#!/usr/bin/env bash
# Writes the generated code from graph/schema and gqlgen.yml, that of the example's client in Go, and what web/client knows of the schema.
set -euo pipefail
cd "$(dirname "$0")/.."

go run ./internal/generate
(cd examples/go && go generate ./...)

# Through a variable: the file is not emptied before the program that it belongs to is compiled. KITH is one that has been.
table=$(${KITH:-go run .} schema | go run ./internal/generate/client)
printf '%s\n' "$table" >web/client/schema.js
