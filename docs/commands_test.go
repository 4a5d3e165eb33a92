package docs_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"kith/internal/check"
	"kith/internal/kithtest"
)

var (
	// written is where pages have code: blocks, and what stands between backquotes.
	written = regexp.MustCompile("(?ms)^ *```[a-z]*\n(.*?)^ *```|`([^`\n]+)`|^    (\\S[^\n]*)$")
	called  = regexp.MustCompile(`(?m)(?:^|[|&(;] *|\$ )(?:[A-Z_]+=\S+ +)*(?:bin/)?kith(?:-bench)? +([^|&;<>)#\n\\]*)`)
	aFlag   = regexp.MustCompile(`^--(?:no-)?([a-z][a-z-]*)`)
)

// Every command of the program that a page names exists, with the flags that it is given there.
func TestCommandsExist(t *testing.T) {
	root := program(t)
	helps := map[string]string{} // of commands of kith bench
	checked := 0
	for _, page := range pages(t) {
		if filepath.Base(page) == "CHANGELOG.md" || strings.Contains(page, "/results/") || strings.Contains(page, "/adr/") {
			continue // these tell of programs of their time
		}
		for _, code := range written.FindAllStringSubmatch(read(t, page), -1) {
			for _, call := range called.FindAllStringSubmatch(strings.Join(code[1:], ""), -1) {
				words := strings.Fields(call[1])
				if len(words) == 0 || !regexp.MustCompile(`^(--)?[a-z]`).MatchString(words[0]) {
					continue
				}
				node, path, flags := root.Node, []string{}, []string{}
				for _, word := range words {
					if m := aFlag.FindStringSubmatch(word); m != nil {
						flags = append(flags, m[1])
					} else if next := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word }); next >= 0 {
						node, path = node.Children[next], append(path, word)
					} else if len(path) == 1 && path[0] == "bench" && len(flags) == 0 {
						path = append(path, word)
					}
				}
				checked++
				line := "kith " + strings.TrimSpace(call[1])
				if node == root.Node && len(flags) < len(words) && !strings.HasPrefix(words[0], "--") {
					t.Errorf("%s: %s: there is no such command", page, line)
					continue
				}
				if len(path) > 0 && path[0] == "bench" {
					key := strings.Join(path, " ")
					if helps[key] == "" {
						helps[key] = kithtest.Run(t, kithtest.Program(kithtest.BenchBinary(t)), kithtest.Args(append(path, "--help")...)).Stdout
					}
					for _, f := range flags {
						check.That(t, strings.Contains(helps[key], "--"+f) || strings.Contains(helps[key], "--[no-]"+f), "%s: %s: there is no flag --%s", page, line, f)
					}
					continue
				}
				if node == root.Node {
					node = root.DefaultCmd
				}
				for _, f := range flags {
					if !slices.ContainsFunc(slices.Concat(node.AllFlags(false)...), func(o *kong.Flag) bool { return o.Name == f }) {
						t.Errorf("%s: %s: there is no flag --%s", page, line, f)
					}
				}
			}
		}
	}
	check.That(t, checked >= 60, "only %d commands were found", checked)
	t.Logf("%d commands", checked)
}
