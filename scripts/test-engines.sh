#!/usr/bin/env bash
# Runs all tests that depend on the database server on each engine, one suite after another, and writes the
# results into bench/results/engines.md:
#
#   scripts/test-engines.sh [short]
#
# short                  what a change is tested with: conformance, the rows of a binlog, and one schedule of crashes
#   ENGINES="mysql tidb"   these only; mariadb (the installed one), mariadb11, mysql and tidb if unset
#   SUITES="plans rules"   these only
#   TIMEOUT=20m            for one package (go test -timeout)
#
# Results are kept beside the engines (KITH_TEST_ENGINES), so that the page can be made in several runs: for
# each suite it shows the last run.
set -euo pipefail
cd "$(dirname "$0")/.."

home=${KITH_TEST_ENGINES:-$HOME/.cache/kith-engines}
results=$home/results
page=bench/results/engines.md
all_engines='mariadb mariadb11 mysql tidb'
# name | redundancy mode | title | packages | further flags of go test
all_suites='conformance||Store: conformance and statements|./storage/sqlstore/...|-skip SQLite|Plans|Wrong
plans||Plans of all statements|./storage/sqlstore|-run ^TestPlansMariaDB$
rules||Rules, accounts, caches, import|./social ./accounts/... ./storage/cache/localcache ./storage/cache/rediscache ./storage/epoch ./files/importer/...|-skip SQLite
resolvers||API: resolvers|./resolvers|-skip SQLite
replication||Applying rows|./replication ./loaders|-skip SQLite
stream|stream|Replication by stream|./replication/stream|-skip SQLite
binlog|binlog|Replication by binlog|./replication/binlog/...|-skip SQLite
follow|binlog|A gateway that follows a binlog|./cluster|-run ^TestAGatewayThatFollows
reconcile||Reconciling|./reconcile ./cli|-skip SQLite
faults-sync|sync|Crashes, tokens, relations, one pair|./internal/faults|-run ^Test(Crashes|KilledBeforeNotifying|Relations|SamePair|Tokens)$/^sync
faults-stream|stream|Crashes, tokens, relations, one pair|./internal/faults|-run ^Test(Crashes|KilledBeforeNotifying|Relations|SamePair|Tokens)$/^stream
faults-binlog|binlog|Crashes, tokens, relations, one pair|./internal/faults|-run ^Test(Crashes|KilledBeforeNotifying|Relations|SamePair|Tokens)$/^binlog
program||The program, started and killed|./internal/program|-skip SQLite|Page'

if [ "${1:-}" = short ]; then
	results=$home/short # a short run does not change the results of the page
	all_suites='conformance||Store: conformance|./storage/sqlstore|-run ^TestConformanceMariaDB$
binlog|binlog|Rows of the binlog|./replication/binlog/...|-run ^Test(FollowsReachTheInverseSide|Preflight|PreflightTriesAWrite|ReaderReportsChangesOfBothSides|RowsOfEveryType|LargeAndCompressed|SignIn)$
follow|binlog|A gateway that follows a binlog|./cluster|-run ^TestAGatewayThatFollows
faults-sync|sync|One schedule of crashes|./internal/faults|-run ^TestCrashes$/^sync'
fi

# run ENGINE SUITE PACKAGES FLAGS: writes "passed failed skipped seconds" to the results; fails if a test has failed.
run() {
	local engine=$1 suite=$2 packages=$3 flag=${4%% *} pattern=${4#* } long log began=$SECONDS status=0
	case $suite in faults-*) long=1 ;; *) long= ;; esac # other runs leave most modes to the simulator, which has no servers
	log=$results/$engine-$suite
	KITH_TEST_LONG=$long KITH_TEST_ENGINE=$engine KITH_TEST_ENGINES=$home go test -json -count=1 -timeout "${TIMEOUT:-20m}" "$flag" "$pattern" $packages >"$log.json" || status=$?
	# A pattern of subtests that finds none of them is a mistake in this script.
	awk -v took=$((SECONDS - began)) -v status="$status" -v pattern="$pattern" '
		{ sub(/,"Output":.*/, "") }
		/"Test":/ && match($0, /"Action":"(pass|fail|skip)"/) { ended[substr($0, RSTART + 10, 4)]++ }
		/"Action":"pass"/ && /"Test":"[^"]*\// { subtests++ }
		END {
			if (status != 0 && !ended["fail"]) ended["fail"] = 1 # it did not build, or ended early
			if (pattern ~ /\// && !subtests) ended["fail"]++
			print ended["pass"] + 0, ended["fail"] + 0, ended["skip"] + 0, took
		}' "$log.json" >"$log"
	read -r passed failed skipped took <"$log"
	printf '%-16s %-14s %5d passed %3d failed %3d skipped %5d s\n' "$(version "$engine")" "$suite" "$passed" "$failed" "$skipped" "$took"
	if [ "$failed" -gt 0 ]; then
		sed -n 's/.*"Output":"\( *--- FAIL[^\\]*\).*/\1/p' "$log.json" | head -n 20
		return 1
	fi
}

# cell ENGINE SUITE MODE: the text of a cell of the table
cell() {
	local log=$results/$1-$2 passed failed skipped took
	if [ "$1" = tidb ] && [ "$3" = binlog ]; then
		printf 'has no binlog'
	elif [ ! -s "$log" ]; then
		printf 'not run'
	else
		read -r passed failed skipped took <"$log"
		printf '%d' "$passed"
		if [ "$failed" -gt 0 ]; then printf ', **%d failed**' "$failed"; fi
		if [ "$skipped" -gt 0 ]; then printf ' (%d skipped)' "$skipped"; fi
	fi
}

# version ENGINE
version() {
	if [ "$1" = mariadb ]; then
		PATH="$PATH:/usr/sbin" mariadbd --version | sed 's/.*Ver \([0-9.]*\).*/MariaDB \1/'
	else
		sed 's/-[^ ]*\( from.*\)*$//' "$home/$1/VERSION"
	fi
}

# table: the generated part of the page
table() {
	local engine suite mode title packages flags
	printf '| suite | mode |'
	for engine in $all_engines; do printf ' %s |' "$(version "$engine" 2>/dev/null || echo "$engine")"; done
	printf '\n|---|---|---|---|---|---|\n'
	while IFS='|' read -r suite mode title packages flags; do
		printf '| %s | %s |' "$title" "${mode:+\`$mode\`}"
		for engine in $all_engines; do printf ' %s |' "$(cell "$engine" "$suite" "$mode")"; done
		printf '\n'
	done <<<"$all_suites"
}

mkdir -p "$results"
failures=0
for engine in ${ENGINES:-$all_engines}; do
	if [ "$engine" != mariadb ]; then scripts/install-engines.sh "$engine"; fi
	while IFS='|' read -r suite mode title packages flags <&3; do
		case " ${SUITES:-$suite} " in *" $suite "*) ;; *) continue ;; esac
		if [ "$engine" = tidb ] && [ "$mode" = binlog ]; then continue; fi
		run "$engine" "$suite" "$packages" "$flags" || failures=$((failures + 1))
	done 3<<<"$all_suites"
done
if [ "${1:-}" != short ]; then
	{
		sed '/^<!-- begin: make test-engines/q' "$page"
		echo
		table
		echo
		sed -n '/^<!-- end: make test-engines/,$p' "$page"
	} >"$results/page"
	cp "$results/page" "$page"
fi
[ "$failures" -eq 0 ]
