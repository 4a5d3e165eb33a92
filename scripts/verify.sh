#!/usr/bin/env bash
# Checks what a change must keep: generated code up to date, gofmt, go.mod tidy,
# go vet, staticcheck. Changes nothing; every complaint comes with what mends it.
set -euo pipefail
cd "$(dirname "$0")/.."

failures=0
# complain WHAT MENDS-IT
complain() {
	echo "verify: $1. Mend it with: $2" >&2
	failures=$((failures + 1))
}

# The code is generated in a copy and compared, so the tree may hold unsaved work.
generated() {
	local copy
	copy=$(mktemp -d)
	trap 'rm -rf "$copy"' RETURN
	tar --exclude=./.git --exclude=./bin --exclude=./data --exclude=node_modules -cf - . | tar -xf - -C "$copy"
	cp -r "$copy/." "$copy.before"
	trap 'rm -rf "$copy" "$copy.before"' RETURN
	(cd "$copy" && ./scripts/generate.sh) || return 1
	diff -ru "$copy.before" "$copy"
}

echo "verify: generated code"
generated || complain "generated code differs from its sources (diff above)" "make generate"

echo "verify: gofmt"
unformatted=$(find . -name '*.go' -not -path '*/node_modules/*' -exec gofmt -l {} +)
if [ -n "$unformatted" ]; then
	echo "$unformatted" >&2
	complain "not gofmt'ed (list above)" "gofmt -w $(tr '\n' ' ' <<<"$unformatted")"
fi

echo "verify: go.mod"
# Tidying reads every module's go.mod, also of modules no build needs. Where those cannot
# be fetched nothing is compared, which is said and is no failure.
if ! untidy=$(go mod tidy -diff); then
	if [ -n "$untidy" ]; then
		echo "$untidy" >&2
		complain "go.mod or go.sum is not tidy (diff above)" "go mod tidy"
	else
		echo "verify: go mod tidy could not run (above); not compared" >&2
	fi
fi

echo "verify: go vet"
go vet ./... || complain "go vet found faults (above)" "an edit"

echo "verify: staticcheck"
go tool -modfile=tools/go.mod staticcheck ./... || complain "staticcheck found faults (above)" "an edit"

if [ "$failures" -ne 0 ]; then
	echo "verify: $failures checks failed" >&2
	exit 1
fi
echo "verify: all checks passed"
