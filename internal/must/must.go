// Package must ends a test at the first thing that goes wrong.
package must

import (
	"cmp"
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

// That ends the test unless something holds. The text says what is wrong.
func That(t T, holds bool, format string, args ...any) {
	if !holds {
		t.Helper()
		t.Fatalf(format, args...)
	}
}

// Equal ends the test unless a value is the one that is wanted, as [check.Equal] compares them.
func Equal[V any](t T, what any, got, want V) {
	if !check.Same(got, want) {
		t.Helper()
		t.Fatalf("%v:\ngot  %+v\nwant %+v", what, got, want)
	}
}

// Most ends the test unless there is at most so much of something.
func Most[V cmp.Ordered](t T, what any, got, most V) {
	if got > most {
		t.Helper()
		t.Fatalf("%v: got %v, want at most %v", what, got, most)
	}
}

// Least ends the test unless there is at least so much of something.
func Least[V cmp.Ordered](t T, what any, got, least V) {
	if got < least {
		t.Helper()
		t.Fatalf("%v: got %v, want at least %v", what, got, least)
	}
}

// Value is the value of a result. The test ends if it is an error.
func Value[V any](t T, r storage.Result[V]) V {
	if r.Err != nil {
		t.Helper()
		t.Fatalf("%v", r.Err)
	}
	return r.Value
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
