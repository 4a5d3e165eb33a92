#!/usr/bin/env bash
# Runs the tests of each package again and again, to find those that fail by chance. Two runs
# at a time are each other's load, on 1, 2 and 8 processors in turn. Prints a line for each
# package, and for each failure what the run printed.
#
#   scripts/stress.sh [N] [packages]   N runs of each package (30), of all packages
#   TIMEOUT=20m                        for one run
#   SKIP=regexp                        tests that are left out
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=$PWD/tests.work
runs=${1:-30}
shift || true
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# one RUN PACKAGE-FOLDER runs the test binary once, in the folder of its package.
one() {
	local processors=(1 2 8) began=$SECONDS
	export GOMAXPROCS=${processors[$(($1 % 3))]}
	if (cd "$2" && "$dir/test" -test.count=1 -test.parallel 4 -test.skip "${SKIP:-^$}" -test.timeout "${TIMEOUT:-20m}" >"$dir/$1.log" 2>&1); then
		echo $((SECONDS - began)) >"$dir/$1.ok"
	fi
}

failed=0
for package in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "${@:-work}"); do
	rm -f "$dir"/*
	go test -c -o "$dir/test" "$package"
	for ((run = 1; run <= runs; run++)); do
		while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
		one "$run" "$package" &
	done
	wait
	passed=$(find "$dir" -name '*.ok' | wc -l)
	printf '%3d of %d  %s\n' "$passed" "$runs" "${package#"$PWD"/}"
	for ((run = 1; run <= runs; run++)); do
		[ -e "$dir/$run.ok" ] && continue
		failed=1
		echo "--- run $run"
		grep -E -A 12 '^ *--- FAIL|^panic:|DATA RACE' "$dir/$run.log" || tail -n 30 "$dir/$run.log"
	done
done
exit "$failed"
