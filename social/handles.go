package social

import (
	"iter"
	"strings"

	"kith/storage"
)

// Handles are the handles in a list of accounts that another network has exported, folded, with their lines from 1: those of Mastodon, a CSV whose first
// column is an address, and those of one handle a line, with or without an @ before and a host behind (alice@example.org, alice.bsky.social).
// The header of Mastodon, empty lines and those that begin with # are left out. What is no handle is given as it is, and belongs to nobody.
func Handles(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		n := 0
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			n++
			address, _, _ := strings.Cut(line, ",")
			address = strings.Trim(strings.TrimSpace(address), `"`)
			if address == "" || address[0] == '#' || address == "Account address" {
				continue
			}
			handle := strings.TrimPrefix(address, "@")
			if end := strings.IndexAny(handle, "@."); end >= 0 {
				handle = handle[:end]
			}
			if !yield(n, storage.FoldHandle(handle)) {
				return
			}
		}
	}
}
