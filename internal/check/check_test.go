package check_test

import (
	"fmt"
	"slices"
	"testing"

	"kith/internal/check"
)

// A test that goes on notes what was wrong.
type goesOn struct{ wrong []string }

func (g *goesOn) Helper() {}

func (g *goesOn) Errorf(format string, args ...any) {
	g.wrong = append(g.wrong, fmt.Sprintf(format, args...))
}

func TestDifferencesAreErrors(t *testing.T) {
	one, other := 1, 1
	g := &goesOn{}
	check.Equal(g, "the same", 7, 7)
	check.Equal(g, "by what they hold", []*int{&one}, []*int{&other})
	check.Equal(g, "nothing", nil, []string{})
	check.Equal(g, "nothing", map[string]int{}, nil)
	check.Equal[any](g, "two kinds", 7, int64(7))
	check.Equal(g, 4, []int{1}, []int{2})
	check.Has(g, "a text", "one two", "one", "two", "three", "four")
	check.Lacks(g, "a text", "one two", "three", "two")
	if want := []string{
		"two kinds:\ngot  7\nwant 7", "4:\ngot  [1]\nwant [2]",
		"a text: no three in\none two", "a text: no four in\none two", "a text: two is in\none two",
	}; !slices.Equal(g.wrong, want) {
		t.Errorf("%q, want %q", g.wrong, want)
	}
}
