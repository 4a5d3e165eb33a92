#!/usr/bin/env bash
# Writes the generated code from graph/schema and gqlgen.yml, and that of the example's client in Go.
set -euo pipefail
cd "$(dirname "$0")/.."

go run ./internal/generate
(cd examples/go && go generate ./...)
