// Package deferral splits a query whose fragments carry @defer into operations: one that is answered at
// once, and one for each deferred fragment, all without the directive. So what is answered later is
// planned, read and written as everything else is, and nothing else has to know of it.
//
// A server may answer at once what a client wants to defer. Here that are fragments below a list, more
// than [Most] of them, and fragments that select more of a list which is selected outside, too.
package deferral

import (
	"slices"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/selections"
)

// Most is how many fragments of an operation are deferred: each is executed by itself, beside the others.
const Most = 8

// Fragments are those of a document that carry @defer. Nil is none.
type Fragments struct {
	deferred map[ast.Selection]*ast.Directive

	varies bool // variables decide what is selected, or deferred
	mu     sync.Mutex
	splits map[*ast.OperationDefinition]*Split // of a document that does not vary
}

// Take takes @defer out of a validated document that nobody else reads yet, and returns the fragments that
// carried it; nil if there are none.
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

// A Split is what is made of an operation.
type Split struct {
	// First is answered at once.
	First *Operation

	// Parts are the deferred fragments, each behind the one that it stands in.
	Parts []*Part
}

// A Part is a deferred fragment.
type Part struct {
	// Label is what the client calls it; "" if it does not.
	Label string

	// Path is where its object is, from the root of the answer: names of the response.
	Path []string

	// Within is the part that it stands in; nil if that is what is answered first.
	Within *Part

	// Operations answer it. There is more than one if it adds to objects that are selected outside, too.
	Operations []*Operation
}

// An Operation answers what is selected on one object.
type Operation struct {
	*ast.OperationDefinition

	// Memo is that of the operation's own selections.
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

// Split splits a query; nil if nothing of it is deferred with these variables. Requests share
// the result; it must not be changed.
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
