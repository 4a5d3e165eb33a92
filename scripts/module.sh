#!/usr/bin/env bash
# Gives the module another path, everywhere that it is written: imports, go.mod, gqlgen.yml, linker flags, the files of
# deploy/. With the path of a repository that can be fetched, `go install PATH@latest` installs the program.
#
#   scripts/module.sh github.com/somebody/kith
#
# Changes files of the working tree. make generate and make verify should find nothing to do afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."

new=${1:-}
if ! [[ $new =~ ^[a-z0-9.-]+(/[A-Za-z0-9._~-]+)*$ ]]; then
	echo "usage: $0 MODULE/PATH" >&2
	exit 2
fi
old=$(go list -m)
# Only folders of the module, so that its packages are matched, but not /etc/kith/kith.env.
folders=$(git ls-files '*.go' | sed -n 's|/.*||p' | sort -u | tr '\n' '|')

export OLD=$old NEW=$new FOLDERS=${folders%|}
git ls-files -z -- '*.go' '*.gotpl' '*go.mod' '*package.json' '*.yml' Makefile 'scripts/*.sh' deploy/Dockerfile |
	xargs -0 perl -pi -e '
		s{(?<![\w./-])\Q$ENV{OLD}\E/(?=(?:$ENV{FOLDERS})\b)}{$ENV{NEW}/}g;
		s{"\Q$ENV{OLD}\E/"}{"$ENV{NEW}/"}g;
		s{(?<![\w./-])\Q$ENV{OLD}\E(?= (?:v0\.0\.0|=>))}{$ENV{NEW}} if $ARGV =~ /go\.mod$/;
		s{^module \Q$ENV{OLD}\E(?=$|/)}{module $ENV{NEW}} if $ARGV =~ /go\.mod$/;
	'
git ls-files -z -- '*.go' | xargs -0 gofmt -w
echo "module: $old is $new"
