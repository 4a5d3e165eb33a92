package storagetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// checkpoints: values by name, for stores that keep them. Every promise uses names of its own.
type checkpoints struct{ *harness }

func (s checkpoints) AnUnknownNameHasNone(t *testing.T) {
	s.wantCheckpoint(t, "unknown", nil, false)
	s.deleteCheckpoint(t, "unknown") // this is no error
	s.wantCheckpoint(t, "unknown", nil, false)
}

func (s checkpoints) TheValueComesBack(t *testing.T) {
	large := make([]byte, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range large {
		large[i] = byte(random.Uint32())
	}
	for i, value := range [][]byte{[]byte("a position"), {}, {0}, []byte("\x00'\"\\\xff\n"), large} {
		name := fmt.Sprint("back ", i)
		s.saveCheckpoint(t, name, value)
		s.wantCheckpoint(t, name, value, true)
	}
}

func (s checkpoints) TheLastValueCounts(t *testing.T) {
	for _, value := range []string{"one", "a longer one", "one", "1"} {
		s.saveCheckpoint(t, "last", []byte(value))
		s.wantCheckpoint(t, "last", []byte(value), true)
	}
}

func (s checkpoints) NamesAreApart(t *testing.T) {
	long := strings.Repeat("n", 189)
	names := []string{"apart", "Apart", "apart%", "apart_", long + "1", long + "2"}
	for _, name := range names {
		s.saveCheckpoint(t, name, []byte(name))
	}
	s.deleteCheckpoint(t, "apart_")
	for _, name := range names {
		if name != "apart_" {
			s.wantCheckpoint(t, name, []byte(name), true)
		}
	}
}

func (s checkpoints) WhatIsDeletedIsForgotten(t *testing.T) {
	s.saveCheckpoint(t, "deleted", []byte("value"))
	for range 2 {
		s.deleteCheckpoint(t, "deleted")
		s.wantCheckpoint(t, "deleted", nil, false)
	}
	s.saveCheckpoint(t, "deleted", []byte("again"))
	s.wantCheckpoint(t, "deleted", []byte("again"), true)
}

// Callers reuse their buffers.
func (s checkpoints) ValuesAreCopied(t *testing.T) {
	value := []byte("value")
	s.saveCheckpoint(t, "copied", value)
	clear(value)
	got, _, err := s.checkpoints(t).LoadCheckpoint(t.Context(), "copied")
	must.OK(t, err)
	wantEqual(t, "value", string(got), "value")
	clear(got)
	s.wantCheckpoint(t, "copied", []byte("value"), true)
}

func (h *harness) checkpoints(t *testing.T) storage.Checkpoints {
	t.Helper()
	return part[storage.Checkpoints](t, h)
}

func (h *harness) saveCheckpoint(t *testing.T, name string, value []byte) {
	t.Helper()
	must.OK(t, h.checkpoints(t).SaveCheckpoint(t.Context(), name, value))
}

func (h *harness) deleteCheckpoint(t *testing.T, name string) {
	t.Helper()
	must.OK(t, h.checkpoints(t).DeleteCheckpoint(t.Context(), name))
}

func (h *harness) wantCheckpoint(t *testing.T, name string, want []byte, wantFound bool) {
	t.Helper()
	got, found, err := h.checkpoints(t).LoadCheckpoint(t.Context(), name)
	check.That(t, err == nil && found == wantFound && bytes.Equal(got, want), "checkpoint %q: %.100q, %v, %v; want %.100q, %v", name, got, found, err, want, wantFound)
}
