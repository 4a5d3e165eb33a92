package docs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// A reader has limited time: each part of the documents has at most so many words, as `wc -w` counts them. These bounds only
// go down.
func TestWords(t *testing.T) {
	for _, part := range []struct {
		name   string
		files  []string
		atMost int
	}{
		{"pages for users", []string{"start/*.md", "how-to/*.md", "reference/*.md"}, 36_450},
		{"inside", []string{"inside/*.md"}, 12_000},
		{"decisions", []string{"inside/adr/*.md"}, 25_000},
		{"README", []string{"../README.md"}, 1_100},
		{"results", []string{"../bench/results/*.md"}, 12_000},
	} {
		words, largest, most := 0, "", 0
		for _, pattern := range part.files {
			files, err := filepath.Glob(pattern)
			must.That(t, err == nil && len(files) > 0, "%v, %v", pattern, err)
			for _, file := range files {
				n := len(strings.Fields(read(t, file)))
				if words += n; n > most {
					largest, most = file, n
				}
			}
		}
		t.Logf("%s: %d words of %d; %s has %d", part.name, words, part.atMost, largest, most)
		check.That(t, words <= part.atMost, "%s: %d words, at most %d: shorten or move some; the longest page is %s with %d", part.name, words, part.atMost, largest, most)
	}
}
