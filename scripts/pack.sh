#!/usr/bin/env bash
# Packs what a release has beside programs: deploy/helm as the chart kith-VERSION.tgz, and web/client as the npm package kith-client-VERSION.tgz,
# with the licence and the schema of the release. The same commit gives the same bytes.
#
#   scripts/pack.sh 1.0.0 FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: $0 VERSION FOLDER} into=${2:?usage: $0 VERSION FOLDER}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$into"
rm -f "$into"/kith-*.tgz

# pack FOLDER NAME: the folder of $work as NAME-VERSION.tgz.
pack() {
	chmod -R u=rwX,go=rX "$work/$1"
	tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -C "$work" -cf - "$1" | gzip -9n >"$into/$2-$version.tgz"
}

cp -R deploy/helm "$work/kith"
sed -i -E "s/^(version|appVersion): .*/\1: $version/" "$work/kith/Chart.yaml"
pack kith kith

mkdir "$work/package"
cp LICENSE web/client/{README.md,package.json,*.js,*.d.ts} "$work/package"
cp graph/sdl/released.graphql "$work/package/schema.graphql"
sed -i -E "s/^(  \"version\": ).*/\1\"$version\",/" "$work/package/package.json"
pack package kith-client
