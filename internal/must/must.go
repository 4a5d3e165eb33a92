// Package must ends a test at the first thing that goes wrong.
package must

import (
	"cmp"
	"os"
	"time"

	"kith/internal/check"
	"kith/storage"
)

// T is what a test, a benchmark and a property have.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// OK ends the test if there is an error.
func OK(t T, err error) {
	if err != nil {
		t.Helper()
		t.Fatalf("%v", err)
	}
}

// All ends the test at the first result that is an error.
func All[V any](t T, results []storage.Result[V]) {
	for _, r := range results {
		if r.Err != nil {
			t.Helper()
			t.Fatalf("%v", r.Err)
		}
	}
}

// ends is a test that ends where one that is checked goes on.
type ends struct{ T }

func (e ends) Errorf(format string, args ...any) {
	e.Helper()
	e.Fatalf(format, args...)
}

// That is [check.That], and ends the test.
func That(t T, holds bool, format string, args ...any) {
	if !holds {
		t.Helper()
		t.Fatalf(format, args...)
	}
}

// Equal is [check.Equal], and ends the test.
func Equal[V any](t T, what any, got, want V) {
	t.Helper()
	check.Equal(ends{t}, what, got, want)
}

// Most is [check.Most], and ends the test.
func Most[V cmp.Ordered](t T, what any, got, most V) {
	t.Helper()
	check.Most(ends{t}, what, got, most)
}

// Least is [check.Least], and ends the test.
func Least[V cmp.Ordered](t T, what any, got, least V) {
	t.Helper()
	check.Least(ends{t}, what, got, least)
}

// Value is the value of a result. The test ends if it is an error.
func Value[V any](t T, r storage.Result[V]) V {
	if r.Err != nil {
		t.Helper()
		t.Fatalf("%v", r.Err)
	}
	return r.Value
}

// File is what a file has in it. The test ends if it cannot be read.
func File(t T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	OK(t, err)
	return content
}

// Soon waits until something holds, and ends the test if it does not in a minute, which a busy machine does not take.
func Soon(t T, what string, holds func() bool) {
	for began := time.Now(); !holds(); pause(began) {
		if time.Since(began) > time.Minute {
			t.Helper()
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// OKSoon waits until a check has no error, as [Soon] does, and ends the test with the last one.
func OKSoon(t T, check func() error) {
	began := time.Now()
	for err := check(); err != nil; err = check() {
		if time.Since(began) > time.Minute {
			t.Helper()
			t.Fatalf("not within a minute: %v", err)
		}
		pause(began)
	}
}

// pause waits before it is asked again. To ask may take long, so it is asked less and less often: a wait becomes longer by a
// tenth at most.
func pause(began time.Time) {
	time.Sleep(min(max(time.Since(began)/10, time.Millisecond), 50*time.Millisecond))
}
