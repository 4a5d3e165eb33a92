#!/usr/bin/env bash
# The schema of a release, graph/sdl/released.graphql, with which later changes are compared (make test-clients):
#
#   VERSION=1.0.0 scripts/schema.sh     writes it, and forgets the accepted changes. Commit both before the tag
#   scripts/schema.sh --check 1.0.0     fails if it is not the schema of that version; does nothing without one
set -euo pipefail
cd "$(dirname "$0")/.."

# released VERSION: the schema, as the file has it.
released() {
	echo "# The schema of Kith $1, as \`kith schema\` prints it. scripts/schema.sh writes it; check/diff.mjs compares with it."
	go run . schema
}

if [ "${1:-}" = --check ]; then
	[ -z "${2:-}" ] || released "$2" | cmp -s - graph/sdl/released.graphql || {
		echo "schema: graph/sdl/released.graphql is not the schema of $2: VERSION=$2 $0 writes it; commit it before the tag" >&2
		exit 1
	}
	exit
fi
[[ ${VERSION:-} =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "usage: VERSION=1.0.0 $0 | $0 --check 1.0.0" >&2; exit 2; }
released "$VERSION" >graph/sdl/released.graphql
echo '{}' >graph/sdl/check/accepted.json
