// Package deploy_test compares the files with which operators start Kith with the program.
package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"kith/accounts/identity"
	"kith/cli"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func read(t *testing.T, path string) string { return string(must.File(t, path)) }

// document is a YAML document, or a part of one.
type document map[string]any

// documents returns the documents of a YAML file.
func documents(t *testing.T, path string) (list []document) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(read(t, path))))
	for {
		var d document
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			return list
		}
		must.That(t, err == nil, "%s: %v", path, err)
		list = append(list, d)
	}
}

// at follows keys into a document. It returns nil if a key is missing.
func (d document) at(keys ...string) any {
	var value any = map[string]any(d)
	for _, key := range keys {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

// texts are the strings of a list.
func texts(value any) (list []string) {
	all, _ := value.([]any)
	for _, v := range all {
		list = append(list, v.(string))
	}
	return list
}

// model is the program's command line.
func model(t *testing.T) (*cli.Program, *kong.Kong) {
	t.Helper()
	var p cli.Program
	parser, err := kong.New(&p, kong.Name("kith"), cli.Vars, kong.Exit(func(int) { t.Error("the program ended") }))
	must.OK(t, err)
	return &p, parser
}

// started is a process as a file starts it.
type started struct {
	where string
	args  []string
	env   map[string]string
}

// parsed is what the program makes of its arguments and variables.
func (s started) parsed(t *testing.T) *cli.Program {
	t.Helper()
	for name, value := range s.env {
		t.Setenv(name, value)
	}
	program, parser := model(t)
	_, err := parser.Parse(s.args)
	must.That(t, err == nil, "%s: %q: %v", s.where, s.args, err)
	err = program.Check()
	must.That(t, err == nil, "%s: %v", s.where, err)
	for name := range s.env {
		os.Unsetenv(name) // Setenv restores the old value
	}
	return program
}

// No secret that stands in these files or in the pages starts a gateway.
func TestExampleSecretsAreRefused(t *testing.T) {
	pages, err := filepath.Glob("../docs/*/*.md")
	must.OK(t, err)
	seen := 0
	for _, file := range append(pages, "kubernetes/secret.yaml", "systemd/kith.env", "compose.yaml", "env.example") {
		for _, found := range regexp.MustCompile(`KITH_JWT_SECRET[=:] *"?([^\s"$][^"#\n]*)`).FindAllStringSubmatch(read(t, file), -1) {
			seen++
			s := identity.Settings{SecretFlags: identity.SecretFlags{JWTSecret: identity.Secret(strings.TrimSpace(found[1]))}, TokenTTL: time.Hour}
			if err := s.Check(); err == nil || !strings.Contains(err.Error(), "`openssl rand -hex 32`") {
				t.Errorf("%s: %q: %v", file, found[1], err)
			}
		}
	}
	check.That(t, seen >= 2, "only %d secrets were found", seen)
}

// All variables KITH_… in these files, and in what `make up` runs, are settings of the program.
func TestVariablesAreSettings(t *testing.T) {
	var known []string
	_, parser := model(t)
	for _, flag := range parser.Model.Flags {
		known = append(known, flag.Envs...)
	}
	for _, command := range parser.Model.Leaves(false) {
		for _, flag := range command.Flags {
			known = append(known, flag.Envs...)
		}
	}
	var files []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	must.That(t, err == nil && len(files) >= 20, "%v, %v", files, err)
	seen := 0
	for _, file := range append(files, "../scripts/up.sh") {
		for _, name := range regexp.MustCompile(`\bKITH_[A-Z_]*[A-Z]\b`).FindAllString(read(t, file), -1) {
			seen++
			check.That(t, slices.Contains(known, name), "%s: the program has no setting %s", file, name)
		}
	}
	check.That(t, seen >= 20, "only %d variables were found", seen)
}
