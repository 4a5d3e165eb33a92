#!/usr/bin/env bash
# Starts what deploy/compose.yaml starts, without Docker: two MariaDB servers, Redis, a replicator, two gateways, an auditor, and
# Prometheus if it is installed. Grafana is left out. Prints the addresses, and stops everything on Ctrl-C.
#
# FOLDER=…    the folder of the data, which are kept. Default: kith-up in the user's data folder
# PORT=8080   the port of the first gateway; the others use the ports that follow it
# PROGRAM=…   the program that is started as Kith. Default: bin/kith
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/local/sbin:/usr/sbin" # servers are in sbin, which an ordinary user's PATH leaves out

folder=${FOLDER:-${XDG_DATA_HOME:-$HOME/.local/share}/kith-up}
port=${PORT:-8080}
program=${PROGRAM:-$PWD/bin/kith}

fail() {
	echo "up: $1" >&2
	exit 1
}

for needed in mariadbd mariadb-install-db mariadb redis-server flock; do
	command -v "$needed" >/dev/null || fail "$needed is not installed (scripts/install-test-deps.sh installs the servers on Debian)"
done
[ -x "$program" ] || fail "$program is not there: make build"
mkdir -p "$folder"
chmod 700 "$folder"
exec 9>"$folder/lock"
flock -n 9 || fail "it runs already in $folder"

# Each process gets its own group, so that Ctrl-C reaches only this script, which stops them in order.
set -m
names=() pids=()

# start NAME COMMAND…: in the background, with its own log. The process ends with this script, even if the script is killed.
start() {
	local name=$1 with=()
	shift
	if command -v setpriv >/dev/null; then with=(setpriv --pdeathsig TERM --); fi
	"${with[@]}" "$@" >"$folder/$name.log" 2>&1 9>&- &
	names+=("$name") pids+=($!)
}

# stop ends all processes, the last started first: gateways end before the servers that they use.
stop() {
	trap '' INT TERM
	local i
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill -TERM "${pids[i]}" 2>/dev/null || true
		wait "${pids[i]}" 2>/dev/null || true
	done
}
trap stop EXIT
trap 'echo; echo "up: ending"; exit 0' INT TERM

# all_run fails if a process has ended by itself.
all_run() {
	local i
	for i in "${!pids[@]}"; do
		kill -0 "${pids[i]}" 2>/dev/null || fail "${names[i]} has ended; its log ends: $(tail -n 3 "$folder/${names[i]}.log")"
	done
}

# until_true WHAT COMMAND…: repeats the command for up to a minute, until it succeeds.
until_true() {
	local what=$1 i
	shift
	for ((i = 0; i < 600; i++)); do
		if "$@" >/dev/null 2>&1; then return; fi
		all_run
		sleep 0.1
	done
	fail "$what does not answer; see the logs in $folder"
}

# The password of the databases and the secret of tokens are made once, and kept.
secrets=$folder/secrets
[ -s "$secrets" ] || (
	umask 077
	for name in password jwt; do echo "$name=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"; done >"$secrets"
)
# shellcheck source=/dev/null
. "$secrets"

as_root=()
if [ "$(id -u)" -eq 0 ]; then as_root=(--user=root); fi

# install_data FOLDER: MariaDB's initial data, moved to their place once they are complete. Each server has a folder for
# temporary files, because a server that starts removes those of others.
install_data() {
	mkdir -p "$1.tmp"
	[ ! -d "$1" ] || return 0
	rm -rf "$1.new"
	mariadb-install-db --no-defaults --datadir="$1.new" --tmpdir="$1.tmp" --auth-root-authentication-method=normal --skip-test-db \
		"${as_root[@]}" >"$1.log" 2>&1 || fail "mariadb-install-db: $(grep -im 3 error "$1.log" || tail -n 5 "$1.log")"
	mv "$1.new" "$1"
}

# mariadb N: a server with the settings of deploy/mariadb, the database kith_(N-1) and the user kith.
mariadb_server() {
	local name=mariadb-$1 socket=$folder/mariadb-$1.sock
	install_data "$folder/$name"
	start "$name" mariadbd --defaults-file="$PWD/deploy/mariadb/kith.cnf" "${as_root[@]}" --server-id="$1" \
		--datadir="$folder/$name" --tmpdir="$folder/$name.tmp" --socket="$socket" --pid-file="$folder/$name.pid" --bind-address=127.0.0.1 --port=$((port + 3 + $1))
}
prepare_mariadb() {
	local socket=$folder/mariadb-$1.sock
	until_true "mariadb-$1" mariadb --no-defaults --socket="$socket" --user=root --execute='DO 1'
	{
		echo "CREATE DATABASE IF NOT EXISTS kith_$(($1 - 1)); CREATE USER IF NOT EXISTS 'kith'@'%' IDENTIFIED BY '$password';"
		cat deploy/mariadb/grants.sql
	} | mariadb --no-defaults --socket="$socket" --user=root
}

echo "up: starting in $folder"
mariadb_server 1
mariadb_server 2
mkdir -p "$folder/redis"
start redis redis-server --bind 127.0.0.1 --port $((port + 6)) --dir "$folder/redis" --save '' --appendonly no --maxmemory 256mb --maxmemory-policy volatile-lru
prepare_mariadb 1
prepare_mariadb 2

export KITH_STORE="mysql:kith:$password@tcp(127.0.0.1:$((port + 4)))/kith_0;kith:$password@tcp(127.0.0.1:$((port + 5)))/kith_1"
export KITH_REDIS=redis://127.0.0.1:$((port + 6))/0 KITH_LOG_FORMAT=json
# For the commands of an operator.
(umask 077 && printf "export %s='%s'\n" KITH_STORE "$KITH_STORE" KITH_REDIS "$KITH_REDIS" KITH_JWT_SECRET "$jwt" >"$folder/kith.env")
"$program" migrate >"$folder/migrate.log" 2>&1 || fail "$(tail -n 1 "$folder/migrate.log")"
start replicator env KITH_ADMIN_ADDR=127.0.0.1:$((port + 2)) "$program" replicate
gateway=(env KITH_JWT_SECRET="$jwt" KITH_REPLICATE=false KITH_STOP_DELAY=0s)
start gateway-1 "${gateway[@]}" KITH_ADDR=127.0.0.1:"$port" KITH_ADMIN_ADDR=127.0.0.1:$((port + 7)) "$program" serve
start gateway-2 "${gateway[@]}" KITH_ADDR=127.0.0.1:$((port + 1)) KITH_ADMIN_ADDR=127.0.0.1:$((port + 8)) "$program" serve
start auditor env KITH_JWT_SECRET="$jwt" KITH_ADMIN_ADDR=127.0.0.1:$((port + 9)) "$program" reconcile watch http://127.0.0.1:"$port" http://127.0.0.1:$((port + 1))

if command -v prometheus >/dev/null; then
	mkdir -p "$folder/prometheus"
	cp -r deploy/prometheus/. "$folder/prometheus/"
	sed -i 's/15s/2s/' "$folder/prometheus/prometheus.yaml"
	echo "- targets: ['127.0.0.1:$((port + 7))', '127.0.0.1:$((port + 8))']" >"$folder/prometheus/targets/gateways.yaml"
	echo "- targets: ['127.0.0.1:$((port + 2))']" >"$folder/prometheus/targets/replicators.yaml"
	echo "- targets: ['127.0.0.1:$((port + 9))']" >"$folder/prometheus/targets/auditors.yaml"
	start prometheus prometheus --config.file="$folder/prometheus/prometheus.yaml" --storage.tsdb.path="$folder/prometheus/data" \
		--web.listen-address=127.0.0.1:$((port + 3)) --log.level=warn
fi

# ready PORT [PATH]: whether a program of Kith says that it is ready.
ready() {
	local status
	exec 8<>"/dev/tcp/127.0.0.1/$1" || return 1
	printf 'GET %s HTTP/1.0\r\n\r\n' "${2:-/readyz}" >&8
	read -r -t 1 status <&8 || return 1
	exec 8>&-
	[[ $status == *" 200 "* ]]
}
for i in 2 7 8; do until_true "port $((port + i))" ready $((port + i)); done
until_true "port $((port + 9))" ready $((port + 9)) /healthz

cat <<EOF
up: everything answers
  http://127.0.0.1:$port/            the first gateway, with GraphiQL
  http://127.0.0.1:$((port + 1))/            the second
  http://127.0.0.1:$((port + 2))/metrics     the replicator
  http://127.0.0.1:$((port + 9))/metrics     the auditor
EOF
if command -v prometheus >/dev/null; then echo "  http://127.0.0.1:$((port + 3))/            Prometheus, with the alerts"; fi
cat <<EOF
  127.0.0.1:$((port + 4)), $((port + 5)), $((port + 6))       two MariaDB and a Redis
Before commands such as $program doctor: source $folder/kith.env
Logs and data are in $folder. Ctrl-C ends everything.
EOF

# If a process ends by itself, name it, and stop the others.
wait -n "${pids[@]}" || true
all_run
