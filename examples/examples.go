// Package examples has operations to try on the demo graph: the tabs of GraphiQL. The folders beside them are clients,
// programs of their own.
package examples

import "embed"

//go:embed *.graphql
var files embed.FS

// Names are those of the operations' files, in the order of the tabs. What changes nothing comes first.
var Names = []string{"read", "common", "suggestions", "people", "feed", "follow", "block", "request", "subscription"}

// All returns the operations, in the order of Names. Each has a name, and its variables have defaults.
func All() []string {
	var all []string
	for _, name := range Names {
		text, err := files.ReadFile(name + ".graphql")
		if err != nil {
			panic(err) // it is embedded: the tests have read it, or nobody can
		}
		all = append(all, string(text))
	}
	return all
}
