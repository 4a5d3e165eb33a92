#!/usr/bin/env bash
# Writes the table of slow tests in docs/inside/testing.md: TABLE=1 make test calls it with the events of all tests. A test whose subtests run at
# the same time takes as long as the longest of them.
#
#   scripts/slowtests.sh EVENTS
set -euo pipefail
cd "$(dirname "$0")/.."

page=docs/inside/testing.md
table=$(mktemp)
trap 'rm -f "$table"' EXIT
{
	printf '\n| seconds | test | package |\n|---|---|---|\n'
	# {"Time":"…","Action":"pass","Package":"…","Test":"…","Elapsed":…}: names have neither quotes nor commas
	grep -E '"Action":"(pass|fail)","Package":"[^"]*","Test":"[^"]*","Elapsed":' "$1" |
		sed -E 's/.*"Package":"([^"]*)","Test":"([^"\/]*)[^"]*","Elapsed":([0-9.]+).*/\1 \2 \3/' |
		awk -v module="$(GOWORK=off go list -m)/" '
			{ name = "`" $2 "` | `" substr($1, index($1, module) == 1 ? length(module) + 1 : 1) "`"; if ($3 > took[name]) took[name] = $3 }
			END { for (name in took) printf "| %.0f | %s |\n", took[name], name }' |
		sort -t '|' -k 2,2nr -k 3 | awk 'NR <= 25'
	echo
} >"$table"
sed -i -e '/^<!-- slow tests -->$/,/^<!-- end of slow tests -->$/{//!d}' -e "/^<!-- slow tests -->\$/r $table" "$page"
