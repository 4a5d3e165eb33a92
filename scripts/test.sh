#!/usr/bin/env bash
# Runs the tests of all packages ("all", the default). "race" runs the tests of the concurrent packages once
# more, under the race detector. It leaves out tests that the detector makes many times slower and finds nothing
# in: those on SQLite in Go, those of plans, those that count statements, and long ones that ask for one thing after another. "clients" runs the tests with large
# programs from npm, which "all" skips. Prints a line for each package as it ends, every half minute what is running,
# then what was skipped and why, what failed, how long each package took, and a last line with the counts.
#
#   TIMEOUT=30m       for one package (go test -timeout)
#   KITH_TEST_LONG=1  the long tests too
#   TABLE=1           writes the table of slow tests in docs/inside/testing.md
set -euo pipefail
cd "$(dirname "$0")/.."

# Packages that run under the race detector, each with the packages below it, and the tests that are left out.
concurrent='cluster|gateway|internal/testenv|loaders|resolvers|social|storage'
slow='SQLite|Plans|Statements|FeedsOfARequestShare|OfManyUsers|IncompleteSaySo|TestWrongStoresFail|ConformancePacked'
slow="$slow|AStoreIsCopiedUnderLoad|CopiersAreKilled|PagesOfAListShare|NullComesOnlyWithAnError|CursorsReveal|AMalformedID|LongListsInMemory|NoStatement|DatabasesOutOfUse|EmptyShards|StoresThatMustExist|BulkWritesCount|ShareItsBudget|WhenTheCountIsWrong|ThatOfBruteForce|WhatIsHiddenChangesNoAnswer|WhyOfEveryKind|EqualAliases|EverybodySees|AreLikeUnknownOnes"
slow="$slow|AServerWithoutRoom|TheAccountIsTrue|BytesAreWhat|BytesAPost|PairedDamage|CostOnRequest|APrefixChanges|SelectedInSeveralWays"
slow="$slow|/SQLite" # the last one: go test looks at nothing behind a part that is about subtests

# Packages that take long, the longest first.
slowest='internal/faults internal/program storage/sqlstore resolvers bench/suite internal/app internal/sim cluster replication/binlog reconcile gateway bench/baseline examples internal/hostile internal/storagetest social'

# How many seconds a package may take on two quiet cores while four others run. All other packages may take 40.
budgets='bench/suite 200
cluster 70
examples 60
gateway 90
internal/app 70
internal/faults 230
internal/program 260
reconcile 100
replication/binlog 80
resolvers 260
storage/sqlstore 340'

export GOWORK=off
what=${1:-all}
module=$(go list -m)
kept=$PWD/bin/test/programs

# events prints the test2json events. The package paths contain no blanks, so lists of them are split into words.
# -count=1: the tests use servers and data that go test's cache does not know of.
events() {
	local packages first
	export GOWORK=$PWD/tests.work
	packages=$(go list work)
	# Packages run in the order given. The slowest come first, so that none of them runs alone at the end.
	first=$(printf "$module/%s\n" $slowest)
	packages="$first"$'\n'"$(grep -vxF "$first" <<<"$packages")"
	# -p and -parallel: tests mostly wait (for servers and for windows of time), and can wait at the same time.
	# With three packages more than processors, hardly a processor waits (with two, one in six); what computes all the time has one more.
	local at_once=$(($(getconf _NPROCESSORS_ONLN) + 1))
	[ "$1" != all ] || at_once=$((at_once + 2))
	# GOGC: there is enough memory, and garbage collection took 9 to 13 % of the suite's processor time on stores in Go.
	export GOGC=${GOGC:-400}
	# -vet: make lint vets everything, with more checks. -ldflags=-s: a binary without debugging data is linked
	# in half the time, and stack traces of panics do not need that data.
	local link="-vet=off -ldflags=-s" tested
	local test="go test -json -count=1 $link -p $at_once -parallel 4 -timeout ${TIMEOUT:-30m}"
	case $1 in
	clients) KITH_TEST_CLIENTS=1 $test ./examples ./internal/routers ./gateway/trusted ./graph/sdl ./internal/app ;;
	race) $test -race -skip "$slow" $(grep -E "^$module/($concurrent)(/|\$)" <<<"$packages") ;;
	*)
		# go test links every test program each time. go test -c links those again that are not what they would become, so
		# they are kept, and run here as go test does. If one cannot be built, go test says why.
		tested=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $packages | grep .)
		if mkdir -p "$kept" && go test -c $link -o "$kept/" $tested >&2; then
			xargs -P "$at_once" -n 1 ./scripts/test.sh one <<<"$tested"
		else
			$test $packages
		fi
		;;
	esac
}

# one prints the events of one package, whose test program has been built. An event is written at once, so those of several do not mix.
one() {
	export GOWORK=$PWD/tests.work
	cd "./${1#"$module"}"
	go tool test2json -t -p "$1" "$kept/${1##*/}.test" -test.v=test2json -test.paniconexit0 -test.parallel 4 -test.timeout "${TIMEOUT:-30m}"
}

case $what in
events | one) # gotestsum calls back, see below
	"$what" "$2"
	exit
	;;
esac

if [ "$(go env CGO_ENABLED)" != 1 ] || ! command -v "$(go env CC)" >/dev/null 2>&1; then
	if [ "$what" = race ]; then
		echo "test: no C compiler here, so nothing runs under the race detector"
		[ "${CI:-}" != true ] || exit 1 # there, it would look as if it had passed
		exit 0
	fi
	export CGO_ENABLED=0
fi

# What tests write is in memory, if there is room for it: most of them waited for the disk, for data that the next minute
# removes. A process that is killed loses nothing there, either. Go links programs where it would without this.
memory=/dev/shm
if [ -z "${TMPDIR:-}" ] && [ "$(df -k --output=avail "$memory" 2>/dev/null | tail -n 1)" -ge 4000000 ] 2>/dev/null &&
	[ "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)" -ge 6000000 ] && folder=$(mktemp -d "$memory/kith-XXXXXX"); then
	printf '#!/bin/sh\n' >"$folder/runs" && chmod +x "$folder/runs"
	if "$folder/runs" 2>/dev/null; then # programs that tests build are there, too
		export GOTMPDIR=${GOTMPDIR:-/tmp} TMPDIR=$folder
	fi
fi

log=$(mktemp)
KITH_TEST_RUN=$(mktemp -d) && export KITH_TEST_RUN # where tests note which programs have been built in this run, see internal/kithtest

# running says every half minute which packages have begun and not ended.
running() {
	while sleep 30 >/dev/null 2>&1; do # whoever reads what is printed does not wait for it
		grep -E '^\{"Time":"[^"]*","Action":"(start|pass|fail|skip)","Package":"[^"]*"(,"Elapsed":[0-9.]*)?\}$' "$log" |
			awk -F '"' -v module="$module/" -v seconds="$SECONDS" '
				{ name = $12; sub("^" module, "", name); if ($8 == "start") begun[name] = 1; else { delete begun[name]; ended++ } }
				END {
					for (name in begun) list = list " " name
					if (list == "" && !ended) list = " the compiler"
					printf "-- %d s: %d packages have ended, running:%s\n", seconds, ended, list
				}' || true
	done
}
running &
trap 'kill "$!" 2>/dev/null || true; rm -rf "$log" "$KITH_TEST_RUN" "${folder:-}"' EXIT
status=0
go tool -modfile=internal/tools/go.mod gotestsum --format pkgname --jsonfile "$log" \
	--raw-command -- ./scripts/test.sh events "$what" || status=$?

# The last line counts tests and subtests. A package that fails without a failing test (it does not build, or
# ends early) counts as one failure. Three of four events are of something else, which grep leaves out in a quarter of the time.
{ grep -E '^\{"Time":"[^"]*","Action":"(pass|fail|skip)"' "$log" || true; } | awk -v status="$status" -v budgets="$budgets" -v what="$what" -v module="$module/" '
	BEGIN {
		n = split(budgets, lines, "\n")
		for (i = 1; i <= n; i++) { split(lines[i], b, " "); budget[b[1]] = b[2] }
	}
	# {"Time":"…","Action":"…","Package":"…","Test":"…","Elapsed":…}
	function field(name,    at) {
		if (!match($0, "\"" name "\":\"?[^\",}]*")) return ""
		at = substr($0, RSTART, RLENGTH)
		sub("\"" name "\":\"?", "", at)
		return at
	}
	{
		action = field("Action"); package = field("Package"); test = field("Test")
		if (test != "") {
			ended[action]++
			if (action == "fail") explained[package] = 1
		} else if (action == "fail" || action == "pass") {
			took[package] = field("Elapsed") + 0
			if (action == "fail" && !(package in explained)) ended["fail"]++
		}
	}
	END {
		if (status != 0 && !ended["fail"]) ended["fail"] = 1 # nothing could run at all
		for (package in took) {
			name = package
			if (index(name, module) == 1) name = substr(name, length(module) + 1)
			most = name in budget ? budget[name] : 40
			late = what == "all" && took[package] > most ? sprintf("  above its budget of %d s", most) : ""
			if (took[package] >= 5) printf "%7.1f s  %s%s\n", took[package], name, late | "sort -rn"
		}
		close("sort -rn")
		printf "%d passed, %d failed, %d skipped\n", ended["pass"], ended["fail"], ended["skip"]
	}'
[ -z "${TABLE:-}" ] || [ "$what" != all ] || scripts/slowtests.sh "$log"
exit "$status"
