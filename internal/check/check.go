// Package check compares in tests what is with what should be. A difference is an error of the test, which goes on.
package check

import (
	"reflect"
	"strings"
)

// T is what a test, a benchmark and a property have.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal checks that a value is the one that is wanted. Pointers are followed, and a list or map of nothing is as good as nil.
func Equal[V any](t T, what any, got, want V) {
	if !Same(got, want) {
		t.Helper()
		t.Errorf("%v:\ngot  %+v\nwant %+v", what, got, want)
	}
}

// Same reports whether [Equal] takes one value for the other.
func Same(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Kind() == y.Kind() && (x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.Len() == 0 && y.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a, b)
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
