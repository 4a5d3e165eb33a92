// Package selections compiles what a document selects into a [Plan], and remembers what has been
// made of its selections, so that a query that is asked again and again is read once.
//
// A [Memo] belongs to one document and lives as long as the gateway keeps that. What is put
// into it must follow from the document alone: not from variables, which is why selections
// with fragments or directives are left out, and not from who asks.
package selections

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
)

// Memo is what has been made of one document. The zero value is ready; it may be used by
// many requests at once. A nil Memo remembers nothing.
type Memo struct {
	mu   sync.Mutex
	made atomic.Pointer[[]entry] // replaced as a whole: it is read by every request, and written by the first few
}

// most is how many values one document may have made of it. They are looked through one by
// one; documents with more selections are read anew.
const most = 24

type entry struct {
	of    any // what was made: a key that the maker chooses
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

// Get returns what was made of a selection, under the key that it was put under.
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

// Put keeps what was made of a selection, unless there is much already. The value is shared
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
	var made []entry
	if old := m.made.Load(); old != nil {
		made = *old
	}
	if len(made) == most {
		return
	}
	made = append(slices.Clip(made), entry{of, slices.Clone(sel), value})
	m.made.Store(&made)
}

// mostSimple is how many fields are looked through for doubles, each beside each.
const mostSimple = 32

// Simple tells whether a selection is what it looks like: nothing but fields, of which
// there is none to leave out, to bring in or to merge. Long ones are taken for others. What
// lies below the fields may be otherwise.
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
