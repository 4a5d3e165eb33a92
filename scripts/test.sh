#!/usr/bin/env bash
# Runs every test, and those of the packages where things happen at once also under the
# race detector, but for what it makes many times slower and shows nothing in: SQLite
# in Go, plans and numbers of statements. Prints go test's lines, what was skipped and
# why, what failed, and a closing line with the counts.
#
#   TIMEOUT=20m       for one package (go test -timeout)
#   KITH_TEST_LONG=1  the long schedules too
set -euo pipefail
cd "$(dirname "$0")/.."

# Packages that run under the race detector too, each with those below it, and the tests
# that do not.
concurrent='deployment|gateway|internal/testenv|loaders|resolvers|social|storage'
slow='SQLite|Plans|Statements|OfManyUsers|IncompleteSaySo|TestWrongStoresFail|ConformancePacked|/SQLite'

# events prints the test2json events of both runs as one stream. The package paths hold
# no blanks, so lists of them are split into words.
events() {
	local status=0 packages raced
	packages=$(go list ./...)
	raced=$(grep -E "^[^/]+/($concurrent)(/|\$)" <<<"$packages" || true)
	# -count=1: the tests use servers and data that go test's cache knows nothing of.
	local test="go test -json -count=1 -timeout ${TIMEOUT:-20m}"
	if [ -n "${RACE-}" ] && [ -n "$raced" ]; then $test "$RACE" -skip "$slow" $raced || status=1; fi
	$test $packages || status=1
	return "$status"
}

if [ "${1:-}" = events ]; then # gotestsum calls back, see below
	events
	exit
fi

export RACE=-race
if [ "$(go env CGO_ENABLED)" != 1 ] || ! command -v "$(go env CC)" >/dev/null 2>&1; then
	echo "test: no C compiler here, so the race detector is left out"
	export RACE='' CGO_ENABLED=0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
go tool -modfile=internal/tools/go.mod gotestsum --format standard-quiet --jsonfile "$log" \
	--raw-command -- ./scripts/test.sh events || status=$?

# The closing line counts tests and subtests. A package that fails without a failing test
# (it does not build, or ends early) counts as one failure.
awk -F '"' -v status="$status" '
	{ # {"Time":"…","Action":"…","Package":"…","Test":"…",…: keys in every fourth field
		delete event
		for (i = 2; i + 2 <= NF && $i != "Output"; i += 4) event[$i] = $(i + 2)
	}
	event["Test"] != "" { ended[event["Action"]]++ }
	event["Action"] == "fail" && event["Test"] != "" { explained[event["Package"]] = 1 }
	event["Action"] == "fail" && event["Test"] == "" && !(event["Package"] in explained) { ended["fail"]++ }
	END {
		if (status != 0 && !ended["fail"]) ended["fail"] = 1 # nothing could run at all
		printf "%d passed, %d failed, %d skipped\n", ended["pass"], ended["fail"], ended["skip"]
	}' "$log"
exit "$status"
