#!/usr/bin/env bash
# Installs the real servers and the browser that the tests start, if they are
# missing, on Debian and Ubuntu. Prints nothing if there is nothing to do.
#
# If it cannot install them, it says so, and the tests that need them are skipped.
# With CI=true that is an error, because there these tests would fail.
set -euo pipefail

# Servers are in sbin, which an ordinary user's PATH leaves out.
PATH="$PATH:/usr/local/sbin:/usr/sbin"

# have NAME…: is one of these programs installed?
have() {
	local name
	for name in "$@"; do
		if command -v "$name" >/dev/null 2>&1; then return 0; fi
	done
	return 1
}

# give_up WHY
give_up() {
	echo "install-test-deps: $1: cannot install ${missing[*]}." >&2
	if [ "${CI:-}" = true ]; then
		exit 1
	fi
	echo "install-test-deps: the tests that need them will be skipped." >&2
	exit 0
}

missing=()
{ have mariadbd && have mariadb-install-db; } || missing+=(mariadb-server)
have redis-server || missing+=(redis-server)
have chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable || missing+=(chromium)
have promtool || missing+=(prometheus)
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi

have apt-get || give_up "this is not Debian or Ubuntu"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
	have sudo && sudo -n true 2>/dev/null || give_up "neither root nor sudo without a password"
	as_root=(sudo -n)
fi

echo "install-test-deps: installing with apt: ${missing[*]} (the tests start private instances; no system service is started)"

# A policy-rc.d that exits with 101 keeps package scripts from starting services. If
# the machine already has a policy-rc.d, it is left alone.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap '"${as_root[@]}" rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
	"${as_root[@]}" chmod 755 "$policy"
fi

apt() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" </dev/null
}
apt update || echo "install-test-deps: apt-get update failed; trying with the lists at hand" >&2
# Debian has a Chromium without windows, which takes half of the processor time.
if apt-cache show chromium-headless-shell >/dev/null 2>&1; then missing=("${missing[@]/%chromium/chromium-headless-shell}"); fi
apt install -y --no-install-recommends "${missing[@]}" || give_up "apt-get install failed"
