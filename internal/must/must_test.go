package must_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"kith/internal/must"
	"kith/storage"
)

// A test that ends notes why.
type ends struct{ why string }

func (e *ends) Helper() {}

func (e *ends) Fatalf(format string, args ...any) {
	e.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestWhatGoesWrongEndsTheTest(t *testing.T) {
	wrong := errors.New("wrong")
	asked := 0
	for want, run := range map[string]func(must.T){
		"":                                   func(t must.T) { must.OK(t, nil) },
		"wrong":                              func(t must.T) { must.OK(t, wrong) },
		"a number:\ngot  2\nwant 1":          func(t must.T) { must.Equal(t, "a number", 1, 1); must.Equal(t, "a number", 2, 1) },
		"1 of 2":                             func(t must.T) { must.That(t, true, "it holds"); must.That(t, false, "%d of %d", 1, 2) },
		"a number: got 2, want at most 1":    func(t must.T) { must.Most(t, "a number", 1, 1); must.Most(t, "a number", 2, 1) },
		"a number: got 0.5, want at least 1": func(t must.T) { must.Least(t, "a number", 1, 1); must.Least(t, "a number", 0.5, 1) },
		"7, wrong": func(t must.T) {
			must.Value(t, storage.Result[int]{Err: fmt.Errorf("%d, %w", must.Value(t, storage.Result[int]{Value: 7}), wrong)})
		},
		"wrong, of two": func(t must.T) {
			must.All(t, []storage.Result[int]{{Found: true}, {Err: fmt.Errorf("%w, of two", wrong)}})
		},
		"open none: no such file or directory": func(t must.T) { must.File(t, "none") },
		"never: not within a minute":           func(t must.T) { must.Soon(t, "never", func() bool { return false }) },
		"came, by the third time": func(t must.T) {
			must.Soon(t, "soon", func() bool { asked++; return asked == 3 })
			t.Fatalf("came, by the third time")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &ends{}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				run(e)
			}()
			if <-ended; e.why != want {
				t.Errorf("ended with %q, want %q", e.why, want)
			}
		})
	}
}
