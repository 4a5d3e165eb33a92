#!/usr/bin/env bash
# Installs database servers that the tests can run on, besides the machine's MariaDB:
#
#   scripts/install-engines.sh [mysql] [mariadb11] [tidb]    (all three if none is named)
#
# Each goes into a folder of its own below KITH_TEST_ENGINES (~/.cache/kith-engines if that is
# not set), with every library that it needs. Neither root nor the machine's packages are touched.
# An engine that is already installed is left alone; remove its folder to get a newer one.
#
#   mysql      MySQL of Debian sid, whatever version that has today
#   mariadb11  MariaDB 11.8 of Debian 13
# tidb       TiDB with its own store for tests, compiled: some minutes the first time
#
# MySQL and MariaDB need apt-get, dpkg-deb and Debian's keys (debian-archive-keyring). TiDB needs go.
set -euo pipefail
shopt -s inherit_errexit

engines=${KITH_TEST_ENGINES:-$HOME/.cache/kith-engines}
mkdir -p "$engines"
engines=$(cd "$engines" && pwd)

# mirror: the Debian mirror that this machine's apt uses
mirror() {
	local sources
	sources=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
	awk '$1 == "URIs:" && $2 ~ /debian/ { print $2; exit }
		$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^https?:.*debian/) { print $i; exit } }' <<<"$sources" |
		sed 's/debian-security/debian/'
}

# unpack ENGINE SUITE PACKAGE…: unpacks the packages, with all they depend on, below the engine's folder.
# apt works there with its own lists and its own state, in which no package is installed.
unpack() {
	local into=$engines/$1 suite=$2 from deb
	shift 2
	local apt=$into/.apt
	mkdir -p "$apt"/{etc/{apt.conf.d,preferences.d},lists/partial,archives/partial}
	: >"$apt/status"
	from=$(mirror)
	if [ -z "$from" ]; then
		echo "install-engines: apt on this machine names no Debian archive" >&2
		return 1
	fi
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from $suite main" >"$apt/etc/sources.list"
	# Check-Valid-Until: the mirror's copy may be older than its lists allow. Its signature is still checked.
	cat >"$apt/apt.conf" <<-END
		Dir "$apt";
		Dir::Etc "$apt/etc";
		Dir::State "$apt";
		Dir::State::Lists "$apt/lists";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt";
		APT::Architecture "$(dpkg --print-architecture)";
		APT::Sandbox::User "$(id -un)";
		Acquire::Languages "none";
		Acquire::Check-Valid-Until "false";
		Acquire::Check-Date "false";
		Debug::NoLocking "true";
	END
	APT_CONFIG=$apt/apt.conf apt-get -qq update
	APT_CONFIG=$apt/apt.conf apt-get -qq -y --no-install-recommends --download-only install "$@" >/dev/null
	for deb in "$apt"/archives/*.deb; do
		case ${deb##*/} in perl* | libperl*) continue ;; esac # they are for scripts that no test starts
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$into" --exclude ./usr/share/doc --exclude ./usr/share/man --exclude ./usr/share/locale
	done
	rm -rf "$apt"
}

# wrap ENGINE PROGRAM…: lets the programs start with the libraries that were unpacked beside them
wrap() {
	local root=$engines/$1 program loader libraries
	shift
	loader=$(find "$root" -name 'ld-linux*.so.*' | sort | head -n 1)
	libraries=$(dirname "$(find "$root" -name libc.so.6 | sort | head -n 1)")
	for program in "$@"; do
		program=$root/$program
		mv "$program" "$program.bin"
		printf '#!/bin/sh\nexec "%s" --argv0 "%s" --library-path "%s" "%s.bin" "$@"\n' \
			"$loader" "$program" "$libraries" "$program" >"$program"
		chmod 755 "$program"
	done
}

install_mysql() {
	unpack mysql sid mysql-server-core
	wrap mysql usr/sbin/mysqld
	"$engines/mysql/usr/sbin/mysqld" --no-defaults --version | sed 's/.*Ver /MySQL /; s/ for .*//'
}

install_mariadb11() {
	unpack mariadb11 trixie mariadb-server-core mariadb-client-core
	wrap mariadb11 usr/sbin/mariadbd usr/bin/my_print_defaults usr/bin/resolveip
	"$engines/mariadb11/usr/sbin/mariadbd" --no-defaults --version | sed 's/.*Ver /MariaDB /; s/ for .*//'
}

# The module proxy has TiDB's main branch as of 26 November 2025; its releases are not modules. The
# replacements are copied from TiDB's own go.mod, because Go ignores those of a dependency.
install_tidb() {
	local at=20251126154744-e4e814fdc0af
	cat >"$engines/tidb/go.mod" <<-END
		module tidb

		go 1.26

		require (
			github.com/pingcap/tidb v1.1.0-beta.0.$at
			github.com/pingcap/tidb/pkg/parser v0.0.0-$at
		)

		replace (
			github.com/go-ldap/ldap/v3 => github.com/YangKeao/ldap/v3 v3.4.5-0.20230421065457-369a3bab1117
			github.com/pingcap/tidb/pkg/parser => github.com/pingcap/tidb/pkg/parser v0.0.0-$at
			sourcegraph.com/sourcegraph/appdash => github.com/sourcegraph/appdash v0.0.0-20190731080439-ebfcffb1b5c0
			sourcegraph.com/sourcegraph/appdash-data => github.com/sourcegraph/appdash-data v0.0.0-20151005221446-73f23eafcf67
		)
	END
	(cd "$engines/tidb" && go build -mod=mod -o tidb-server github.com/pingcap/tidb/cmd/tidb-server) >&2
	echo "TiDB of $(sed 's/\(....\)\(..\)\(..\).*/\1-\2-\3/' <<<"$at"), unistore"
}

[ $# -gt 0 ] || set -- mysql mariadb11 tidb
for engine in "$@"; do
	case $engine in mysql | mariadb11 | tidb) ;; *)
		echo "install-engines: no engine $engine; there are mysql, mariadb11 and tidb" >&2
		exit 2
		;;
	esac
	# The file VERSION is written last. An engine without it is incomplete, and is installed again.
	if [ ! -s "$engines/$engine/VERSION" ]; then
		rm -rf "${engines:?}/$engine"
		mkdir "$engines/$engine"
		began=$SECONDS
		version=$("install_$engine")
		echo "$version" >"$engines/$engine/VERSION"
		echo "install-engines: $engine took $((SECONDS - began)) s and $(du -sm "$engines/$engine" | cut -f1) MB" >&2
	fi
	echo "$engine: $(cat "$engines/$engine/VERSION")"
done
