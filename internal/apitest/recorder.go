package apitest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"kith/storage/sqlstore"
)

// Recorder records the statements of a store. Its Observe is for [sqlstore.Config.OnStatement].
type Recorder struct {
	mu         sync.Mutex
	statements Statements
}

// Statements are some statements of a store, in the order in which they ended.
type Statements []sqlstore.Statement

// Observe records one statement.
func (r *Recorder) Observe(_ context.Context, s sqlstore.Statement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statements = append(r.statements, s)
}

// Take returns the statements since the last Take.
func (r *Recorder) Take() Statements {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.statements
	r.statements = nil
	return taken
}

// ByLookup counts the statements of each look-up.
func (s Statements) ByLookup() map[string]int {
	n := make(map[string]int)
	for _, one := range s {
		n[one.Lookup]++
	}
	return n
}

// MostOnOneShard counts for each look-up the statements on the shard that had the
// most of them.
func (s Statements) MostOnOneShard() map[string]int {
	type key struct {
		lookup string
		shard  int
	}
	n := make(map[key]int)
	most := make(map[string]int)
	for _, one := range s {
		p := key{one.Lookup, one.Shard}
		n[p]++
		most[one.Lookup] = max(most[one.Lookup], n[p])
	}
	return most
}

// Shards lists the shards that were asked, ascending.
func (s Statements) Shards() []int {
	seen := make(map[int]bool)
	for _, one := range s {
		seen[one.Shard] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// String is the counts by look-up: "counts 1, users 2".
func (s Statements) String() string {
	n := s.ByLookup()
	var parts []string
	for _, lookup := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s %d", lookup, n[lookup]))
	}
	return strings.Join(parts, ", ")
}
