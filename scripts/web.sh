#!/bin/sh
# Builds the pages from npm into web/assets, where go:embed takes them from: GraphiQL from
# web/graphiql, the app from web/app. Both are built at the same time.
#
#   scripts/web.sh            without Node or npm: says so in a line and succeeds, because Kith
#                             then serves a plain query page, and a page that says so at /app
#   scripts/web.sh --require  fails instead
#
# If the pages were built from these sources before, nothing happens. The packages (some 320
# MB) are in a temporary folder, which is removed when the script ends. npm's own settings
# decide the registry.
set -eu

require=false
case "${1:-}" in
    '') ;;
    --require) require=true ;;
    *) echo "usage: $0 [--require]" >&2; exit 2 ;;
esac

root=$(cd "$(dirname "$0")/.." && pwd)
assets=$root/web/assets

# sources_of PAGE: the files that it is built from.
sources_of() {
    cd "$root/web"
    find "$1" -name node_modules -prune -o -path "$1/src/gql.ts" -prune -o -type f -print
    echo embed.mjs
    if [ "$1" = app ]; then find ../graph/schema client -type f; fi
}

# stamp_of PAGE: a checksum that changes with any of these files.
stamp_of() { (cd "$root/web" && sources_of "$1" | LC_ALL=C sort | xargs cat | cksum); }

# without PAGE REASON: ends the build of a page that could not be built.
without() {
    if [ -d "$assets/$1" ]; then
        echo "web: $1: $2; keeping what was built before" >&2
    else
        echo "web: $1: $2; Kith serves a plain page instead (with Node 20.19 or newer and npm: make web)" >&2
    fi
    if $require; then exit 1; fi
    exit 0
}

# failed PAGE WHAT LOG: calls without, with the first line of the log that names an error.
failed() {
    without "$1" "$2 failed: $(grep -m1 -i error "$3" || tail -n 1 "$3")"
}

# build PAGE: builds the page in $work/PAGE, a copy of its folder.
build() {
    cp -R "$root/web/$1" "$work/$1"
    rm -rf "$work/$1/node_modules"
    cd "$work/$1"
    npm ci --prefer-offline --include=optional --loglevel=error >npm.log 2>&1 || failed "$1" "npm ci" npm.log
    KITH_SCHEMA=$root/graph/schema node build.mjs out >build.log 2>&1 || failed "$1" "the build" build.log
    stamp_of "$1" >out/.stamp
    mkdir -p "$assets"
    rm -rf "${assets:?}/$1"
    mv out "$assets/$1"
}

pages=
for page in graphiql app; do
    if [ "$(cat "$assets/$page/.stamp" 2>/dev/null)" != "$(stamp_of $page)" ]; then pages="$pages $page"; fi
done
if [ -z "$pages" ]; then exit 0; fi

# none REASON: ends the script if no page can be built.
none() { for page in $pages; do (without "$page" "$1") || exit 1; done; exit 0; }
command -v node >/dev/null 2>&1 || none "node is not installed"
command -v npm >/dev/null 2>&1 || none "npm is not installed"
node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || a == 20 && b >= 19 ? 0 : 1)' 2>/dev/null ||
    none "node $(node --version 2>/dev/null) is too old"

work=$(mktemp -d "$root/web/.build.XXXXXX") || none "$root/web is not writable"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cp -R "$root/web/embed.mjs" "$root/web/client" "$work/"

# npm wants a folder for its cache; a user without a home gets one for this run.
if [ -z "${npm_config_cache:-}" ] && ! [ -w "${HOME:-/nonexistent}" ]; then
    HOME=$work
    export HOME
fi

# One quick request first: if no registry can be reached, npm ci asks for every package, twice.
npm view react version --prefer-offline --fetch-retries=0 --fetch-timeout=10000 --loglevel=error >"$work/npm.log" 2>&1 ||
    none "asking npm's registry failed: $(grep -m1 -i error "$work/npm.log" || tail -n 1 "$work/npm.log")"

echo "web: fetching packages with npm and bundling:$pages (once, about 20 s)"
status=0
builders=
for page in $pages; do
    (build "$page") &
    builders="$builders $!"
done
for builder in $builders; do wait "$builder" || status=1; done
exit $status
