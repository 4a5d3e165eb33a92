package storagetest

import (
	"cmp"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// answers returns the values of n results, none of which may be an error.
func answers[V any](t *testing.T, results []storage.Result[V], n int) []V {
	t.Helper()
	must.That(t, len(results) == n, "%d results for %d keys", len(results), n)
	values := make([]V, n)
	for i, result := range results {
		must.That(t, result.Err == nil, "key %d of %d: %v", i, n, result.Err)
		values[i] = result.Value
	}
	return values
}

// one is the answer to one key, which has to be Found.
func one[K, V any](t *testing.T, h *harness, kind *storage.LookupKind[K, V], key K) V {
	t.Helper()
	return found(t, kind.Read(t.Context(), h.store, key), 1)[0]
}

// found returns the values of n results, all of which must be Found.
func found[V any](t *testing.T, results []storage.Result[V], n int) []V {
	t.Helper()
	values := answers(t, results, n)
	for i, result := range results {
		must.That(t, result.Found, "key %d of %d: not found", i, n)
	}
	return values
}

// wantMissing checks that none of n keys has a row.
func wantMissing[V any](t *testing.T, results []storage.Result[V], n int) {
	t.Helper()
	answers(t, results, n)
	for i, result := range results {
		check.That(t, !result.Found, "key %d of %d: found %v, want nothing", i, n, result.Value)
	}
}

// wantFound checks which of the results are Found.
func wantFound[V any](t *testing.T, results []storage.Result[V], want ...bool) {
	t.Helper()
	answers(t, results, len(want))
	for i, result := range results {
		check.That(t, result.Found == want[i], "key %d: found is %v, want %v", i, result.Found, want[i])
	}
}

// wantEqual checks one value.
func wantEqual[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	check.Equal(t, what, got, want)
}

// wantApplied checks the answer for one edge that was applied, and ends the test if it is wrong,
// because there may be thousands of such edges.
func wantApplied(t *testing.T, what string, got, want storage.Changed) {
	t.Helper()
	must.That(t, got.Row == want.Row && got.Changed == want.Changed && sameWritten(got.Also, want.Also), "%s:\ngot  %+v\nwant %+v", what, got, want)
}

// wantAnswer checks the answer to one change.
func wantAnswer(t *testing.T, what string, got, want storage.Changed) {
	t.Helper()
	check.That(t, sameChanged(got, want), "%s:\ngot  %+v\nwant %+v", what, got, want)
}

func sameChanged(a, b storage.Changed) bool {
	return a.Row == b.Row && a.Changed == b.Changed && a.Inverse == b.Inverse && sameWritten(a.Also, b.Also)
}

// wantWritten checks rows that were reported to have been written.
func wantWritten(t *testing.T, what string, got, want []storage.Written) {
	t.Helper()
	check.That(t, sameWritten(got, want), "%s:\ngot  %+v\nwant %+v", what, got, want)
}

// sameWritten reports whether the same rows were reported. Their order is left open, and nil is
// the same as empty.
func sameWritten(a, b []storage.Written) bool {
	order := func(a, b storage.Written) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Edge.From, b.Edge.From), cmp.Compare(a.Edge.To, b.Edge.To),
			cmp.Compare(a.Edge.UpdateTime, b.Edge.UpdateTime))
	}
	return slices.Equal(slices.SortedFunc(slices.Values(a), order), slices.SortedFunc(slices.Values(b), order))
}

// wantList checks a list with its order. Nil and empty lists are the same.
func wantList[V comparable](t *testing.T, what string, got, want []V) {
	t.Helper()
	check.Equal(t, what, got, want)
}
