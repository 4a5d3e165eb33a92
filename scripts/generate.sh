#!/usr/bin/env bash
# Writes the generated code from graph/schema and gqlgen.yml.
set -euo pipefail
cd "$(dirname "$0")/.."

go run ./internal/generate
