package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"kith/internal/check"
	"kith/internal/must"
)

// model is the command line of the program.
func model(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := kong.New(&Program{}, kong.Name("kith"), groups, bounded, Vars)
	must.OK(t, err)
	return parser
}

func TestCandidates(t *testing.T) {
	root := model(t).Model.Node
	for line, want := range map[string]string{
		"im":                        "import",
		"rec":                       "reconcile",
		"reconcile ":                "full incremental realtime watch",
		"reconcile full --re":       "--redis --repair --restart",
		"serve --no-":               "--no-replicate",
		"import --output ":          "text json",
		"import --output=j":         "--output=json",
		"import --strict fo":        "", // a file
		"import --store import --c": "--chunk --config",
		"--max-co":                  "--max-connections --max-cost", // of serve
		"serve --pages ":            "all app graphiql none",
		"serve --identity ":         "",
		"migrate --max-cost":        "",
		"completion ":               "bash zsh fish",
		"nonsense --no-such=":       "",
	} {
		var got []string
		for _, c := range candidates(root, strings.Split(line, " ")) {
			got = append(got, c.word)
		}
		slices.Sort(got)
		check.Equal(t, line, got, slices.Sorted(slices.Values(strings.Fields(want))))
	}
}

// Shells accept their scripts, and ask the program for completions of words, even with wrong settings.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program := filepath.Join(folder, "kith")
	self, err := os.Executable()
	must.OK(t, err)
	must.OK(t, os.WriteFile(program, []byte("#!/bin/sh\nKITH_TEST_PROGRAM=1 exec "+self+" \"$@\"\n"), 0o755))
	const bash = `
source <(kith completion bash)
tried() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _kith; echo "${COMPREPLY[*]}"; }
tried kith im
tried kith import --output = js
tried kith --store sqlite : x rec
tried kith import --rep
complete -p kith`
	const zsh = `
compdef() { :; }
_describe() { print -r -- "${(P)2}"; }
_files() { print files; }
source <(kith completion zsh)
tried() { words=("$@"); CURRENT=$#; _kith; }
tried kith im
tried kith import --output=js
tried kith --store sqlite:x rec
tried kith import --rep`
	const fish = `
kith completion fish | source
complete -C "kith im"
complete -C "kith import --output=js"
complete -C "kith --store sqlite:x rec"
complete -C "kith import --rep"`
	const followed, compared = "Import follows and users from files", "Find where the two sides of edges and the counts disagree, and repair it"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"bash": {[]string{"--norc", "-c", bash}, "import\njson\nreconcile\n\ncomplete -o default -F _kith kith\n"},
		"zsh":  {[]string{"-f", "-c", zsh}, "import:" + followed + "\n--output=json:\nreconcile:" + compared + "\nfiles\n"},
		"fish": {[]string{"--no-config", "-c", fish}, "import\t" + followed + "\n--output=json\nreconcile\t" + compared + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%v: apt-get install %s", err, name)
			}
			command := exec.Command(shell, c.args...)
			command.Dir = t.TempDir()
			command.Env = []string{"PATH=" + folder + ":/usr/bin:/bin", "HOME=" + folder, "KITH_MAX_COST=much", "KITH_STORE=nowhere"}
			var complaints bytes.Buffer
			command.Stderr = &complaints
			out, err := command.Output()
			check.That(t, err == nil && string(out) == c.want && complaints.Len() == 0, "%v\n%q, want\n%q\n%s", err, out, c.want, &complaints)
		})
	}
}
