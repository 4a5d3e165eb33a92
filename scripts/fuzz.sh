#!/usr/bin/env bash
# Runs every fuzz test of the module, one after another, each for FUZZTIME (go test
# -fuzztime; 30s unless given). All run, also after one has failed; then those that failed
# are listed. What a failing one was given lies in its package's testdata/fuzz: `go test`
# runs it again from then on.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${FUZZTIME:-30s}
failed=()
count=0
# "./identity FuzzKeys", a line for each
tests=$(grep -rn --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Z]' . |
	sed -E 's|^(.*)/[^/]*:[0-9]+:func (Fuzz[A-Za-z0-9_]*)\(.*|\1 \2|' | sort) || { echo "fuzz: there are no fuzz tests" >&2; exit 1; }
while read -r package name; do
	count=$((count + 1))
	echo "fuzz: $package $name for $fuzztime"
	go test "$package" -run '^$' -fuzz "^$name\$" -fuzztime "$fuzztime" </dev/null || failed+=("$package $name")
done <<<"$tests"

if [ ${#failed[@]} -gt 0 ]; then
	printf 'fuzz: failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
echo "fuzz: all $count passed"
