#!/usr/bin/env bash
# Makes all that a release has (.goreleaser.yml), its image and its chart, into dist/, and publishes nothing. It does so twice, the second
# time in a copy of the tree, and compares; then a test looks into everything and runs what this machine can run.
#
# make release-check calls it, with goreleaser and cyclonedx-gomod in PATH.
#
#   VERSION=1.0.0   what the release is called; 0.0.0-check if it is not said
set -euo pipefail
cd "$(dirname "$0")/.."

export VERSION=${VERSION:-0.0.0-check}
image=$PWD/bin/image
(cd internal/tools/image && go vet . && go test . && go build -o "$image" .)

# make_all: builds from the current folder, without cgo, paths or clock.
make_all() {
	goreleaser release --snapshot --clean --skip=publish --parallelism 2
	"$image" -source https://example.org/kith dist
	cp bin/packed/*.tgz dist/
	(cd dist && sha256sum --quiet -c SHA256SUMS)
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make_all
mkdir "$work/elsewhere"
tar --exclude=./bin --exclude=./data --exclude=./dist --exclude=node_modules -cf - . | tar -xf - -C "$work/elsewhere"
(cd "$work/elsewhere" && make_all)
for file in SHA256SUMS image/index.json homebrew/kith.rb; do
	diff "dist/$file" "$work/elsewhere/dist/$file" || { echo "release-check: two builds differ in $file" >&2; exit 1; }
done
KITH_TEST_RELEASE=$PWD/dist go test ./deploy -run '^TestRelease' -count=1 -v
echo "release-check: two builds of $VERSION are equal, and hold what they should"
