#!/bin/sh
# Builds GraphiQL from npm into web/assets/graphiql, where go:embed takes it from.
#
#   scripts/graphiql.sh            without Node or npm: says so in one line and succeeds,
#                                  because Kith then serves a plain query page of its own
#   scripts/graphiql.sh --require  fails instead
#
# Done already for these sources: nothing happens. The packages (about 220 MB) live in a
# scratch folder that goes when the script ends; npm's own settings decide the registry.
set -eu

require=false
case "${1:-}" in
    '') ;;
    --require) require=true ;;
    *) echo "usage: $0 [--require]" >&2; exit 2 ;;
esac

root=$(cd "$(dirname "$0")/.." && pwd)
sources=$root/web/graphiql
assets=$root/web/assets

# without REASON: the end of a run that could not build.
without() {
    if [ -d "$assets/graphiql" ]; then
        echo "graphiql: $1; keeping the GraphiQL that was built before" >&2
    else
        echo "graphiql: $1; / will be the plain query page (with Node 18 or newer and npm: make web)" >&2
    fi
    if $require; then exit 1; fi
    exit 0
}

# failed WHAT LOG: without, for the first line of the log that names an error.
failed() {
    without "$1 failed: $(grep -m1 -i error "$2" || tail -n 1 "$2")"
}

stamp=$(cd "$sources" && cat package.json package-lock.json build.mjs main.jsx main.css | cksum)
if [ "$(cat "$assets/graphiql/.stamp" 2>/dev/null)" = "$stamp" ]; then exit 0; fi

command -v node >/dev/null 2>&1 || without "node is not installed"
command -v npm >/dev/null 2>&1 || without "npm is not installed"
node -e 'process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)' 2>/dev/null ||
    without "node $(node --version 2>/dev/null) is too old"

work=$(mktemp -d "$sources/.build.XXXXXX") || without "$sources is not writable"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
(cd "$sources" && cp .npmrc package.json package-lock.json build.mjs main.jsx main.css "$work/")

# npm wants a folder for its cache; a user without a home gets one for this run.
if [ -z "${npm_config_cache:-}" ] && ! [ -w "${HOME:-/nonexistent}" ]; then
    HOME=$work
    export HOME
fi

# One quick question first: with no registry in reach npm ci asks for every package, twice.
cd "$work"
npm view react version --prefer-offline --fetch-retries=0 --fetch-timeout=10000 --loglevel=error >npm.log 2>&1 ||
    failed "asking npm's registry" npm.log

echo "graphiql: fetching packages with npm and bundling them (once, about 15 s)"
npm ci --prefer-offline --include=optional --loglevel=error >npm.log 2>&1 ||
    failed "npm ci" npm.log
node build.mjs out >build.log 2>&1 ||
    failed "the build" build.log

echo "$stamp" >out/.stamp
mkdir -p "$assets"
rm -rf "$assets/graphiql"
mv out "$assets/graphiql"
