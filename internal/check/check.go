// Package check compares in tests what is with what should be. A difference is an error of the test, which goes on.
package check

import (
	"cmp"
	"errors"
	"reflect"
	"strings"
)

// T is what a test, a benchmark and a property have.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// That checks what the other functions do not compare. The text says what is wrong.
func That(t T, holds bool, format string, args ...any) {
	if !holds {
		t.Helper()
		t.Errorf(format, args...)
	}
}

// Equal checks that a value is the one that is wanted. Pointers are followed, and a list or map of nothing is as good as nil.
func Equal[V any](t T, what any, got, want V) {
	if !same(got, want) {
		t.Helper()
		t.Errorf("%v:\ngot  %+v\nwant %+v", what, got, want)
	}
}

// same reports whether [Equal] takes one value for the other.
func same(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Kind() == y.Kind() && (x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.Len() == 0 && y.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a, b)
}

// Most checks that there is at most so much of something: of a number, or of time.
func Most[V cmp.Ordered](t T, what any, got, most V) {
	if got > most {
		t.Helper()
		t.Errorf("%v: got %v, want at most %v", what, got, most)
	}
}

// Least checks that there is at least so much of something.
func Least[V cmp.Ordered](t T, what any, got, least V) {
	if got < least {
		t.Helper()
		t.Errorf("%v: got %v, want at least %v", what, got, least)
	}
}

// Is checks that an error is of a kind, nil included, as [errors.Is] has it.
func Is(t T, what any, err, kind error) {
	if !errors.Is(err, kind) {
		t.Helper()
		t.Errorf("%v: got %v, want %v", what, err, kind)
	}
}

// Says checks that an error says something, or that there is none where there is nothing to say.
func Says(t T, what any, err error, part string) {
	if (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
		t.Helper()
		t.Errorf("%v: got %v, want %q", what, err, part)
	}
}

// Has checks that a text has all of some parts.
func Has(t T, what any, text string, parts ...string) {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Helper()
			t.Errorf("%v: no %s in\n%.4000s", what, part, text)
		}
	}
}

// Lacks checks that a text has none of some parts.
func Lacks(t T, what any, text string, parts ...string) {
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Helper()
			t.Errorf("%v: %s is in\n%.4000s", what, part, text)
		}
	}
}
