// Package selections compiles the selections of a document into a [Plan], and remembers results
// computed from them, so that the work is done once for a repeated query.
//
// A [Memo] belongs to one document and lives as long as the gateway keeps that document. Values put
// into it must follow from the document alone: not from variables, which is why selections with
// fragments or directives are left out, and not from the viewer.
package selections

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
)

// Memo is the results for one document. The zero value is ready; it may be used by
// many requests at once. A nil Memo remembers nothing.
type Memo struct {
	mu   sync.Mutex
	made atomic.Pointer[[]memoized] // replaced as a whole: every request reads it, the first few write it
}

// most is how many values one document may have. They are searched one by one; selections beyond
// that are computed again each time.
const most = 24

// memoized is one value, and what it is for.
type memoized struct {
	of    any // what the value is for: a key that the maker chooses
	sel   ast.SelectionSet
	value any
}

type contextKey struct{}

// With returns a context whose document has the memo.
func With(ctx context.Context, m *Memo) context.Context {
	return context.WithValue(ctx, contextKey{}, m)
}

// For is the memo of the document that is being executed; nil if it has none.
func For(ctx context.Context) *Memo {
	m, _ := ctx.Value(contextKey{}).(*Memo)
	return m
}

// Get returns the value for a selection that was put under the same key.
func (m *Memo) Get(of any, sel ast.SelectionSet) (value any, ok bool) {
	if m == nil {
		return nil, false
	}
	made := m.made.Load()
	if made == nil {
		return nil, false
	}
	for i := range *made {
		if e := &(*made)[i]; e.of == of && slices.Equal(e.sel, sel) {
			return e.value, true
		}
	}
	return nil, false
}

// Put keeps a value for a selection, unless the memo is full. The value is shared
// from then on, and must not be changed.
func (m *Memo) Put(of any, sel ast.SelectionSet, value any) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.Get(of, sel); ok {
		return
	}
	var made []memoized
	if old := m.made.Load(); old != nil {
		made = *old
	}
	if len(made) == most {
		return
	}
	made = append(slices.Clip(made), memoized{of, slices.Clone(sel), value})
	m.made.Store(&made)
}

// mostSimple is how many fields are compared with one another to find duplicates.
const mostSimple = 32

// Simple reports whether a selection consists of plain fields only, none of which can be
// left out, added or merged. Long selections count as not simple. The selections below the fields
// may be of any kind.
func Simple(sel ast.SelectionSet) bool {
	if len(sel) > mostSimple {
		return false
	}
	for i, s := range sel {
		f, ok := s.(*ast.Field)
		if !ok || len(f.Directives) > 0 {
			return false
		}
		for _, before := range sel[:i] {
			if before.(*ast.Field).Alias == f.Alias {
				return false
			}
		}
	}
	return true
}
