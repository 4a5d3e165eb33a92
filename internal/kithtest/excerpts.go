package kithtest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// code is a block of a program on a page, with the comment in the line before it, if there is one.
var code = regexp.MustCompile("(?ms)(?:^<!-- (\\S+) -->\n)?^```(?:js|ts|tsx|go)\n(.*?)^```$")

// Excerpts checks that each block of a program on a page stands, line by line, in the file that the comment before it names, and
// that there are some. It returns the page. Paths are from root.
func Excerpts(t *testing.T, root, page string) string {
	t.Helper()
	text := string(must.File(t, filepath.Join(root, page)))
	blocks := code.FindAllStringSubmatch(text, -1)
	check.That(t, len(blocks) > 0, "%s shows no file", page)
	for _, block := range blocks {
		switch file, lines := block[1], block[2]; {
		case file == "":
			t.Errorf("%s does not say which file has\n%s", page, lines)
		case !strings.Contains("\n"+string(must.File(t, filepath.Join(root, file))), "\n"+lines):
			t.Errorf("%s does not show %s as it is:\n%s", page, file, lines)
		}
	}
	return text
}
