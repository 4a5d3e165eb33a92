// Package resolvers answers the fields of the schema. A resolver translates: it
// checks arguments, makes one call, and converts.
//
// No field waits for a loader's timer. The root field that runs first looks at the
// whole query and fetches, level by level, every key that a level needs in one
// batch for each look-up (fetch.go, needs.go); the resolvers below find what they
// ask for in the loaders already.
package resolvers

import (
	"kith/social"
)

// Resolver is the root of all resolvers.
type Resolver struct {
	Social *social.Graph
}
