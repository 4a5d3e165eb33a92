package check_test

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

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
	check.That(g, true, "it holds")
	check.That(g, false, "%d of %d", 1, 2)
	check.Equal(g, "the same", 7, 7)
	check.Equal(g, "by what they hold", []*int{&one}, []*int{&other})
	check.Equal(g, "nothing", nil, []string{})
	check.Equal(g, "nothing", map[string]int{}, nil)
	check.Equal[any](g, "two kinds", 7, int64(7))
	check.Equal(g, 4, []int{1}, []int{2})
	check.Most(g, "seconds", time.Second, time.Second)
	check.Most(g, "seconds", time.Second+1, time.Second)
	check.Least(g, "bytes", 1, 1)
	check.Least(g, "bytes", 0.5, 1)
	check.Is(g, "an end", fmt.Errorf("read: %w", io.EOF), io.EOF)
	check.Is(g, "an end", nil, nil)
	check.Is(g, "an end", io.EOF, io.ErrNoProgress)
	check.Says(g, "nothing", nil, "")
	check.Says(g, "an end", io.EOF, "EOF")
	check.Says(g, "an end", io.EOF, "end")
	check.Says(g, "an end", nil, "EOF")
	check.Says(g, "no end", io.EOF, "")
	check.Has(g, "a text", "one two", "one", "two", "three", "four")
	check.Lacks(g, "a text", "one two", "three", "two")
	if want := []string{
		"1 of 2", "two kinds:\ngot  7\nwant 7", "4:\ngot  [1]\nwant [2]",
		"seconds: got 1.000000001s, want at most 1s", "bytes: got 0.5, want at least 1", "an end: got EOF, want multiple Read calls return no data or error",
		"an end: got EOF, want \"end\"", "an end: got <nil>, want \"EOF\"", "no end: got EOF, want \"\"",
		"a text: no three in\none two", "a text: no four in\none two", "a text: two is in\none two",
	}; !slices.Equal(g.wrong, want) {
		t.Errorf("%q, want %q", g.wrong, want)
	}
}
