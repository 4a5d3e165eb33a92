#!/usr/bin/env bash
# Runs every fuzz test, one after another, each for FUZZTIME (go test
# -fuzztime; 30s unless given). If one fails, the rest still run; then the failed tests
# are listed. The input that failed is in the package's testdata/fuzz: from then on `go
# test` runs it again.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=$PWD/tests.work
fuzztime=${FUZZTIME:-30s}
failed=()
count=0
# One line for each test, such as "./identity FuzzKeys".
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
