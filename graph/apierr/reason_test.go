package apierr_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
)

// All reasons are values of the schema's enum, in its order, and each is given somewhere: clients are promised no refusal that there is
// not, and there is none without a reason.
func TestReasonsAreThoseOfTheSchema(t *testing.T) {
	const root = "../.."
	text := func(path string) string { return string(must.File(t, filepath.Join(root, path))) }
	_, enum, _ := strings.Cut(text("graph/schema/schema.graphqls"), "enum ErrorReason {")
	var published, defined []string
	for _, m := range regexp.MustCompile(`(?m)^  ([A-Z_]+)$`).FindAllStringSubmatch(enum, -1) {
		published = append(published, m[1])
	}
	names := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) +Reason = "([A-Z_]+)"$`).FindAllStringSubmatch(text("graph/apierr/reason.go"), -1) {
		defined, names[m[1]] = append(defined, m[2]), m[2]
	}
	slices.Sort(published)
	slices.Sort(defined)
	check.That(t, slices.Equal(published, defined) && len(defined) >= 60, "the schema has %v, the program %v", published, defined)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range regexp.MustCompile(`(?:apierr\.)?(\w+)\.Error\(|apierr\.(\w+)`).FindAllStringSubmatch(strings.ReplaceAll(text(strings.TrimPrefix(path, root+"/")), "\n", ""), -1) {
			delete(names, m[1])
			delete(names, m[2])
		}
		return nil
	})
	check.That(t, err == nil && len(names) == 0, "reasons that are never given: %v, %v", names, err)
}

func TestErrorsSayWhetherToTryAgain(t *testing.T) {
	for reason, again := range map[apierr.Reason]bool{
		apierr.HandleTaken: false, apierr.TooManyWrites: true, apierr.TimeOver: true, apierr.Unreachable: true, apierr.StoreCopied: false, apierr.ServerAtFault: false,
	} {
		if err := reason.Error("x %d", 1); err.Retryable != again || err.Message != "x 1" || err.Extensions()["reason"] != string(reason) || err.Extensions()["code"] != string(reason.Code()) {
			t.Errorf("%s: %+v", reason, err)
		}
	}
}
