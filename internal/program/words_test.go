package program_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// plainWords lists the words that exported names may consist of besides those of the glossary in CONTRIBUTING.md: English words
// and words of the field, which a stranger knows. A word of our own belongs into the glossary, and a better one into the code.
const plainWords = "testdata/plainwords.txt"

// TestWordsAreKnown: names that other packages see consist of words that are in the glossary or need none.
func TestWordsAreKnown(t *testing.T) {
	t.Parallel()
	text := must.File(t, plainWords)
	plain := strings.Fields(string(text))
	check.Equal(t, plainWords+", sorted, each word once", plain, slices.Compact(slices.Sorted(slices.Values(plain))))
	known := map[string]bool{}
	for _, word := range plain {
		known[word] = true
	}
	for phrase, times := range glossary(t) {
		check.Most(t, fmt.Sprintf("how often CONTRIBUTING.md explains %q: one word has one meaning", phrase), times, 1)
		for _, word := range strings.Fields(phrase) {
			known[word] = true
		}
	}
	used := map[string]string{} // a name with the word
	for _, d := range declarations(t) {
		if token.IsExported(d.name) {
			for _, word := range wordsOf(d.name) {
				used[word] = d.folder + ": " + d.name
			}
		}
	}
	must.Least(t, "words", len(used), 300)
	for word, name := range used {
		if !known[word] && !known[strings.TrimSuffix(word, "s")] {
			t.Errorf("%q, of %s: is there a word that is known? If not, explain it in CONTRIBUTING.md; if it is plain, add it to %s", word, name, plainWords)
		}
	}
	for _, word := range plain {
		if _, ok := used[word]; !ok {
			_, plural := used[word+"s"]
			check.That(t, plural, "%s has %q, which no exported name has", plainWords, word)
		}
	}
}

// TestNamesMeanOneThing: names that once meant several things are declared in one package at most.
func TestNamesMeanOneThing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"epoch", "kept", "part", "parts", "judge", "merged", "reported", "Reads"} {
		var folders []string
		for _, d := range declarations(t) {
			if d.name == name && !slices.Contains(folders, d.folder) {
				folders = append(folders, d.folder)
			}
		}
		check.Most(t, fmt.Sprintf("packages that declare %s: %v", name, folders), len(folders), 1)
	}
}

// declaration is a name of a package that its other files see.
type declaration struct{ folder, name string }

// declarations lists the types, functions, methods, constants and variables of the product's packages.
func declarations(t *testing.T) (all []declaration) {
	t.Helper()
	err := filepath.WalkDir("../..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, _ := filepath.Rel("../..", filepath.Dir(file))
		if entry.IsDir() {
			if name := entry.Name(); file != "../.." && strings.HasPrefix(name, ".") ||
				slices.Contains([]string{"node_modules", "generated", "testdata", "bin", "dist"}, name) ||
				slices.Contains([]string{"../../bench", "../../internal", "../../examples", "../../data"}, file) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || entry.Name() == "generated.go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				all = append(all, declaration{folder, d.Name.Name})
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						all = append(all, declaration{folder, s.Name.Name})
					case *ast.ValueSpec:
						for _, name := range s.Names {
							all = append(all, declaration{folder, name.Name})
						}
					}
				}
			}
		}
		return nil
	})
	must.OK(t, err)
	return all
}

var (
	camel   = regexp.MustCompile(`([a-z0-9])([A-Z])`)          // usersBy
	acronym = regexp.MustCompile(`([A-Z]+)([A-Z][a-z]{2,}|$)`) // JSONText, but userIDs
)

// wordsOf splits a name: "FollowersYouKnow" has followers, you and know.
func wordsOf(name string) []string {
	return strings.Fields(strings.ToLower(acronym.ReplaceAllString(camel.ReplaceAllString(name, "$1 $2"), "$1 $2")))
}

// glossary counts how often CONTRIBUTING.md explains each word or phrase.
func glossary(t *testing.T) map[string]int {
	t.Helper()
	text := must.File(t, "../../CONTRIBUTING.md")
	phrases := map[string]int{}
	for line := range strings.Lines(section(t, string(text), "Words")) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && !strings.HasPrefix(cells[1], "-") {
			for phrase := range strings.SplitSeq(cells[1], ",") {
				phrases[strings.ToLower(strings.TrimSpace(phrase))]++
			}
		}
	}
	return phrases
}
