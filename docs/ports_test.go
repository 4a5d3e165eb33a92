package docs_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kith/cli"
	"kith/internal/check"
	"kith/internal/must"
)

// The ports of docs/reference/ports-and-exit-codes.md are the program's default and those of the files in deploy/, and there
// are no others.
func TestPortsAreDocumented(t *testing.T) {
	got := submatches("(?m)^\\| `(\\d{4})` \\| [^|]*(?:gateway|`kith)", read(t, "reference/ports-and-exit-codes.md"))
	want := map[string]bool{}
	for _, f := range program(t).DefaultCmd.Flags {
		if f.Name == "addr" {
			want[f.Default[strings.LastIndex(f.Default, ":")+1:]] = true
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") {
			return err
		}
		for _, port := range submatches(`KITH_(?:ADMIN_)?ADDR(?:[:=]|, value:) *"?[\d.]*:(\d+)`, read(t, path)) {
			want[port] = true
		}
		return nil
	})
	must.That(t, err == nil && len(want) >= 3, "%v, %v", want, err)
	for port := range want {
		check.That(t, slices.Contains(got, port), "port %s is not in the table, which has %v", port, got)
	}
	for _, port := range got {
		examples := read(t, filepath.Join(root, "cli/help.go"))
		check.That(t, want[port] || strings.Contains(examples, "127.0.0.1:"+port), "nothing listens at port %s", port)
	}
}

// The program ends with the codes of docs/reference/ports-and-exit-codes.md, and the services do not start again after the one
// that says so.
func TestExitCodesAreDocumented(t *testing.T) {
	folder := t.TempDir()
	good, bad := filepath.Join(folder, "good.txt"), filepath.Join(folder, "bad.txt")
	store := "sqlite:" + filepath.Join(folder, "kith.db")
	for file, text := range map[string]string{good: "1 2\n2 3\n", bad: "1 2\nx y z 1\n3 1\n"} {
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	}
	got := submatches("(?m)^\\| `(\\d+)` \\| [^|]+ \\| [^|]*\\|$", read(t, "reference/ports-and-exit-codes.md"))
	want := []string{"0", "1", "2", "3", "78"}
	check.Equal(t, "the table", got, want)
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"import", "--store", store, good}},
		{1, []string{"import", "--store", store, "--strict", bad}},
		{2, []string{"import", "--store", store, bad}},
		{78, []string{"migrate", "--store", store, "--no-such-flag"}},
		{78, []string{"migrate", "--store", "nowhere"}},
		{1, []string{"healthcheck", "--addr", "127.0.0.1:1"}},
	} {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), c.args, &out, &errs)
		check.That(t, code == c.code, "kith %v: %d, want %d: %s", c.args, code, c.code, errs.String())
	}
	units, err := filepath.Glob(filepath.Join(root, "deploy/systemd/*.service"))
	must.That(t, err == nil && len(units) > 0, "%v, %v", units, err)
	prevents := regexp.MustCompile(`RestartPreventExitStatus=(\d+)`)
	for _, unit := range units {
		if m := prevents.FindStringSubmatch(read(t, unit)); m != nil && m[1] != "78" {
			t.Errorf("%s: %s", unit, m[0])
		}
	}
}
