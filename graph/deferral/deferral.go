// Package deferral splits a query whose fragments carry @defer into operations: one that is answered at
// once, and one for each deferred fragment, all without the directive. So later parts are planned, read
// and written as everything else is, and no other code has to know of them.
//
// A server may answer at once what a client wants to defer. This package does so for fragments below a
// list, for fragments beyond [Most], and for fragments that select more of a list that is also
// selected outside.
package deferral

import (
	"slices"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/selections"
)

// Most is how many fragments of an operation are deferred at most: each is executed by itself, at the
// same time as the others.
const Most = 8

// Fragments are those of a document that carry @defer. Nil is none.
type Fragments struct {
	deferred map[ast.Selection]*ast.Directive

	varies bool // variables decide what is selected, or deferred
	mu     sync.Mutex
	splits map[*ast.OperationDefinition]*Split // of a document that does not vary
}

// Take takes @defer out of a validated document that nothing else reads yet, and returns the fragments
// that carried it; nil if there are none.
func Take(doc *ast.QueryDocument) *Fragments {
	f := &Fragments{}
	for _, op := range doc.Operations {
		f.take(op.SelectionSet)
	}
	for _, fragment := range doc.Fragments {
		f.take(fragment.SelectionSet)
	}
	if len(f.deferred) == 0 {
		return nil
	}
	f.splits = make(map[*ast.OperationDefinition]*Split)
	return f
}

func (f *Fragments) take(set ast.SelectionSet) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			f.look(s.Directives)
			f.take(s.SelectionSet)
		case *ast.InlineFragment:
			f.look(s.Directives)
			s.Directives = f.without(s, s.Directives)
			f.take(s.SelectionSet)
		case *ast.FragmentSpread:
			f.look(s.Directives)
			s.Directives = f.without(s, s.Directives)
		}
	}
}

// look notes whether directives depend on variables.
func (f *Fragments) look(directives ast.DirectiveList) {
	for _, d := range directives {
		for _, argument := range d.Arguments {
			f.varies = f.varies || argument.Value.Kind == ast.Variable
		}
	}
}

func (f *Fragments) without(s ast.Selection, directives ast.DirectiveList) ast.DirectiveList {
	d := directives.ForName("defer")
	if d == nil {
		return directives
	}
	if f.deferred == nil {
		f.deferred = make(map[ast.Selection]*ast.Directive)
	}
	f.deferred[s] = d
	return slices.DeleteFunc(slices.Clone(directives), func(other *ast.Directive) bool { return other == d })
}

// A Split is the operations into which an operation is split.
type Split struct {
	// First is answered at once.
	First *Operation

	// Parts are the deferred fragments. A fragment within another comes after that one.
	Parts []*Part
}

// A Part is a deferred fragment.
type Part struct {
	// Label is the client's name for it; "" if it has none.
	Label string

	// Path is where its object is, from the root of the answer: names of the response.
	Path []string

	// Within is the part that it is within; nil if it is within what is answered first.
	Within *Part

	// Operations answer it. There is more than one if the part adds to objects that are also selected
	// outside.
	Operations []*Operation
}

// An Operation answers what is selected on one object.
type Operation struct {
	*ast.OperationDefinition

	// Memo is the memo of the operation's own selections.
	Memo selections.Memo

	// Path is where the object is, from the root of the answer.
	Path []string

	place *place
}

// All is all operations.
func (s *Split) All() []*ast.OperationDefinition {
	all := []*ast.OperationDefinition{s.First.OperationDefinition}
	for _, p := range s.Parts {
		for _, o := range p.Operations {
			all = append(all, o.OperationDefinition)
		}
	}
	return all
}

// Split splits a query; nil if nothing is deferred with these variables. Requests share the result;
// it must not be changed.
func (f *Fragments) Split(schema *ast.Schema, op *ast.OperationDefinition, vars map[string]any) *Split {
	if f == nil || op.Operation != ast.Query {
		return nil // the rest of a mutation would be executed twice
	}
	if f.varies {
		return f.split(schema, op, vars)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.splits[op]
	if !ok {
		known = f.split(schema, op, vars)
		f.splits[op] = known
	}
	return known
}
