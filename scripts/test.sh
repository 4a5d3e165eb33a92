#!/usr/bin/env bash
# Runs every test: the packages where things happen at once under the race detector,
# the rest without it (SQLite in Go is some ten times slower under it, and the real
# graphs are large). Prints go test's lines, what was skipped and why, what failed,
# and a closing line.
#
#   TIMEOUT=20m  for one package (go test -timeout)
#   KITH_TEST_LONG=1  the long schedules too
set -euo pipefail
cd "$(dirname "$0")/.."

# Packages of the module that run under the race detector, with those below them.
race='loaders|social|resolvers|gateway|storage|internal/testenv'

# stream prints both runs as one stream of test2json events and remembers a failure.
# -count=1: the tests use servers and data that go test's cache knows nothing of.
stream() {
	local status=0 detector=(-race)
	if [ "$(go env CGO_ENABLED)" != 1 ] || ! command -v "$(go env CC)" >/dev/null 2>&1; then
		echo "test: no C compiler, so the race detector is left out" >&2
		detector=()
	fi
	local packages concurrent rest
	packages=$(go list ./...)
	concurrent=$(grep -E "^[^/]+/($race)(/|\$)" <<<"$packages" || true)
	rest=$(grep -vE "^[^/]+/($race)(/|\$)" <<<"$packages" || true)
	# Package paths hold no blanks, so they may be split into words.
	if [ -n "$concurrent" ]; then
		go test -json -count=1 -timeout "${TIMEOUT:-20m}" "${detector[@]}" $concurrent || status=1
	fi
	if [ -n "$rest" ]; then
		go test -json -count=1 -timeout "${TIMEOUT:-20m}" $rest || status=1
	fi
	return $status
}

if [ "${1:-}" = stream ]; then
	stream
	exit
fi

events=$(mktemp)
trap 'rm -f "$events"' EXIT
status=0
go tool -modfile=tools/go.mod gotestsum --format standard-quiet --jsonfile "$events" --raw-command -- "$0" stream || status=$?

# count ACTION: the tests and subtests that ended so.
count() { grep -cE "\"Action\":\"$1\",\"Package\":\"[^\"]*\",\"Test\":" "$events" || true; }
failed=$(count fail)
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
	failed=1 # a package that does not build, or ends outside a test
fi
echo "$(count pass) passed, $failed failed, $(count skip) skipped"
exit "$status"
