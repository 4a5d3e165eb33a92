#!/usr/bin/env bash
# Packs deploy/helm as the chart of a release, FOLDER/kith-VERSION.tgz. The same commit gives the same bytes.
#
#   scripts/chart.sh 1.0.0 FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: $0 VERSION FOLDER} into=${2:?usage: $0 VERSION FOLDER}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R deploy/helm "$work/kith"
sed -i -E "s/^(version|appVersion): .*/\1: $version/" "$work/kith/Chart.yaml"
chmod -R u=rwX,go=rX "$work/kith"
mkdir -p "$into"
rm -f "$into"/kith-*.tgz
tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -C "$work" -cf - kith | gzip -9n >"$into/kith-$version.tgz"
