#!/usr/bin/env bash
# Checks that the generated code is up to date, gofmt, that go.mod is tidy, and that Docker, Compose, Helm and Kubernetes accept the files
# of deploy/. Changes nothing in the tree. What the code says is read by make lint.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

modules=$(go work edit -json tests.work | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p')
failures=0
# complain WHAT [COMMAND]: notes a failure, with the command that fixes it.
complain() {
	echo "verify: $1${2:+; fix it with: $2}" >&2
	failures=$((failures + 1))
}

# Generates in one copy of the tree and compares it with another copy, so that uncommitted
# work is included, and is not changed. The program is compiled here, where most of it has been: a copy shares nothing with other folders.
generated() {
	local copy
	go build -ldflags=-s -o "$work/kith" . || return
	for copy in before after; do
		mkdir "$work/$copy" || return
		tar --exclude=./.git --exclude=./bin --exclude=./data --exclude=node_modules -cf - . |
			tar -xf - -C "$work/$copy" || return
	done
	KITH=$work/kith "$work/after/scripts/generate.sh" || return
	(cd "$work" && diff -ruN before after)
}

# go.mod and go.sum are compared with what go mod tidy would write. That reads the go.mod
# of every module, even of modules that no build needs. If one cannot be fetched, nothing
# is compared and nothing fails.
tidy() {
	local module difference differ=0
	for module in $modules; do
		if difference=$(go -C "$module" mod tidy -diff); then continue; fi
		if [ -z "$difference" ]; then
			echo "verify: go mod tidy cannot run here (above); not compared"
			return 0
		fi
		printf '%s\n' "$difference"
		differ=1
	done
	return "$differ"
}

# Prints the files that gofmt would change; fails if there are any.
formatted() {
	local files
	files=$(find . -name '*.go' -not -path '*/node_modules/*' -exec gofmt -l {} +) || return
	if [ -z "$files" ]; then return 0; fi
	printf '%s\n' "$files"
	return 1
}

echo "verify: generated code"
generated || complain "generated code differs from its sources" "make generate"
echo "verify: gofmt"
formatted || complain "files are not formatted" "gofmt -w FILE…"
echo "verify: go.mod"
tidy || complain "go.mod or go.sum is not tidy" "go mod tidy, in each module"
echo "verify: deploy"
(cd internal/tools/manifests && go run . ../../../deploy) || complain "a file of deploy/ is refused by those that it is for"

if [ "$failures" -ne 0 ]; then
	echo "verify: $failures of 4 checks failed" >&2
	exit 1
fi
echo "verify: all 4 checks passed"
