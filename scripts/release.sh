#!/usr/bin/env bash
# Builds the release archives into dist/, with their checksums:
#
#   scripts/release.sh          kith_VERSION_OS_ARCH.tar.gz for linux and darwin on amd64 and
#                               arm64, and SHA256SUMS
#   scripts/release.sh --check  builds them twice, in two copies of the tree, and compares;
#                               looks into them; leaves nothing in dist/
#
#   scripts/release.sh --schema writes the schema of the release into graph/sdl/released.graphql, with
#                               which later changes are compared (make test-clients), and
#                               forgets the accepted ones. Commit both before the tag
#
#   VERSION=0.1.0   what the release is called. Defaults to the tag of the commit, without its v
#
# The same commit gives the same bytes on any machine, with the same Go and the same GraphiQL:
# no cgo, no paths, no clock. Everything in an archive has the time of the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

platforms='linux/amd64 linux/arm64 darwin/amd64 darwin/arm64'
documents='README.md LICENSE CHANGELOG.md'

fail() {
	echo "release: $1" >&2
	exit 1
}

check=false schema=false
case "${1:-}" in
'') ;;
--check) check=true ;;
--schema) schema=true ;;
*) fail "usage: $0 [--check|--schema]" ;;
esac

command -v git >/dev/null && git rev-parse --verify --quiet HEAD >/dev/null || fail "this is not a git checkout: the release has no commit to name"
tar --version 2>/dev/null | grep -q GNU || fail "GNU tar is needed: others cannot sort names and fix owners"
version=${VERSION:-$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null | sed 's/^v//' || true)}
if $check; then version=${version:-0.0.0-check}; fi
[ -n "$version" ] || fail "the commit has no tag: give VERSION=0.1.0"
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "VERSION=$version is no semantic version such as 0.1.0"

# released: the schema of this release, as graph/sdl/released.graphql has it.
released() {
	echo "# The schema of Kith $version, as \`kith schema\` prints it. scripts/release.sh --schema writes it; check/diff.mjs compares with it."
	go run . schema
}

if $schema; then
	released >graph/sdl/released.graphql
	echo '{}' >graph/sdl/check/accepted.json
	exit
fi
$check || released | cmp -s - graph/sdl/released.graphql ||
	fail "graph/sdl/released.graphql is not the schema of $version: VERSION=$version $0 --schema writes it; commit it before the tag"
[ -f web/assets/graphiql/main.js.gz ] && [ -f web/assets/app/main.js.gz ] || scripts/web.sh --require ||
	fail "the assets of GraphiQL or the app are missing (make web builds them, with Node.js and npm)"
revision=$(git describe --always --abbrev=12 --exclude '*' --dirty)
epoch=$(git log -1 --format=%ct)

# archives FOLDER: builds from the current folder what a release is made of.
archives() {
	local platform name
	for platform in $platforms; do
		name=kith_${version}_${platform/\//_}
		mkdir -p "$1/$name"
		CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} GOAMD64=v1 GOARM64=v8.0 GOFLAGS='' go build -trimpath -buildvcs=false \
			-ldflags "-s -w -X kith/cli.version=$version -X kith/cli.revision=$revision" \
			-o "$1/$name/" . ./bench/kith-bench
		cp $documents "$1/$name/"
		chmod 755 "$1/$name" "$1/$name"/kith*
		(cd "$1/$name" && chmod 644 $documents)
		tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -C "$1" -cf - "$name" |
			gzip -6n >"$1/$name.tar.gz"
		rm -r "${1:?}/$name"
	done
	(cd "$1" && LC_ALL=C sha256sum ./*.tar.gz | sed 's|\./||' >SHA256SUMS)
}

# inspect FOLDER: each archive holds what it should, for its platform, and linked with nothing.
inspect() {
	local platform name output
	for platform in $platforms; do
		name=kith_${version}_${platform/\//_}
		tar -xzf "$1/$name.tar.gz" -C "$1"
		[ "$(cd "$1/$name" && echo *)" = 'CHANGELOG.md LICENSE README.md kith kith-bench' ] || fail "$name holds $(ls "$1/$name")"
		for binary in kith kith-bench; do
			output=$(go version -m "$1/$name/$binary")
			for want in GOOS="${platform%/*}" GOARCH="${platform#*/}" CGO_ENABLED=0 -trimpath=true; do
				grep -q "build	$want$" <<<"$output" || fail "$name/$binary was not built with $want"
			done
		done
		if [ "$platform" = "$(go env GOHOSTOS)/$(go env GOHOSTARCH)" ]; then
			output=$("$1/$name/kith" version)
			[[ $output == "kith $version (commit $revision, "* ]] || fail "$name/kith says: $output"
			echo "release: $output"
		fi
		rm -r "${1:?}/$name"
	done
	(cd "$1" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS are wrong"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! $check; then
	archives "$work/dist"
	rm -rf dist
	mv "$work/dist" dist
	echo "release: $version of commit $revision in dist/"
	cat dist/SHA256SUMS
	exit
fi

# Another path and another clock may not show in the bytes: the second build is of a copy.
archives "$work/first"
mkdir "$work/elsewhere"
tar --exclude=./.git --exclude=./bin --exclude=./data --exclude=./dist --exclude=node_modules -cf - . | tar -xf - -C "$work/elsewhere"
(cd "$work/elsewhere" && archives "$work/second")
diff "$work/first/SHA256SUMS" "$work/second/SHA256SUMS" || fail "two builds differ"
inspect "$work/first"
echo "release: two builds are equal, and hold what they should"
