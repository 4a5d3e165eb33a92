// Package why keeps the rules by which parts of an answer are null, empty or incomplete, for operators who ask for them.
package why

import (
	"slices"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/storage"
)

// A Rule keeps something out of an answer.
type Rule string

// The rules.
const (
	Block        Rule = "block"         // between the viewer and a user
	Closed       Rule = "closed list"   // the user does not show it to the viewer
	Locked       Rule = "locked"        // the user shows everything to followers only
	Hidden       Rule = "hidden"        // the user is deactivated, suspended or deleted
	Mute         Rule = "mute"          // the viewer has muted the user
	NotSuggested Rule = "not suggested" // the user does not want to be, or the viewer has dismissed it or waits for its answer
	Budget       Rule = "budget"        // of the rows that one answer may examine
	Shard        Rule = "dead shard"    // it does not answer
	Limit        Rule = "limit"         // of cost, size, time or rate
)

// Reason is a rule that has kept something out of what is at a path, or below it. About is the user whom it concerns, if there is one.
type Reason struct {
	Path  ast.Path       `json:"path"`
	Rule  Rule           `json:"rule"`
	About storage.UserID `json:"about,omitempty,string"`
}

// Bounds of the reasons of one answer. Paths have names that the client has chosen.
const (
	Most      = 100
	mostBytes = 32 << 10 // of paths
)

// Reasons are those of one answer, each once: the first ones. They may be added at the same time.
type Reasons struct {
	mu    sync.Mutex
	list  []Reason
	bytes int
}

// Add adds a reason. about may be 0: it concerns no user.
func (r *Reasons) Add(path ast.Path, rule Rule, about storage.UserID) {
	isSame := func(other Reason) bool {
		return other.Rule == rule && other.About == about && slices.Equal(other.Path, path)
	}
	size := len(path.String())
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < Most && r.bytes+size <= mostBytes && !slices.ContainsFunc(r.list, isSame) {
		r.bytes += size
		r.list = append(r.list, Reason{append(ast.Path{}, path...), rule, about})
	}
}

// All are the reasons so far.
func (r *Reasons) All() []Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Reason{}, r.list...)
}

// Key is that of the *Reasons in the context of an answer; there are none if nobody asks.
type Key struct{}
