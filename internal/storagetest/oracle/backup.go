package oracle

import (
	"maps"
	"slices"

	"kith/storage"
)

// Backup keeps what a shard has. restore puts that in the place of what it has then; no buckets must have moved. Logs and leases stay as
// they are.
func (s *Store) Backup(shard int) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []func()
	ofUser := func(id storage.UserID) bool { return s.placed.Of(id) == shard }
	from := func(p storage.Pair) bool { return ofUser(p.From) }
	parts = append(parts,
		kept(s.users, ofUser), kept(s.passwords, ofUser), kept(s.counts, ofUser), kept(s.active, ofUser), kept(s.states, ofUser),
		kept(s.messages, from), kept(s.details, from), kept(s.marks, from), kept(s.firsts, from),
		kept(s.handles, func(handle string) bool { return s.placed.OfHandle(handle) == shard }),
		kept(s.identities, func(who storage.Identity) bool { return s.placed.OfHandle(who.Digest()) == shard }),
		kept(s.kinds, func(k storage.OwnerKind) bool { return ofUser(k.Owner) }),
		kept(s.seen, func(what storage.Seen) bool { return ofUser(what.User) }),
		kept(s.lists, func(id storage.ListID) bool { return ofUser(id.Owner) }),
		kept(s.comments, func(id storage.CommentID) bool { return ofUser(id.Author) }),
	)
	for _, t := range s.tables {
		rows := make(map[storage.UserID]map[end]storage.Edge)
		for owner, edges := range t {
			rows[owner] = maps.Clone(edges)
		}
		put := keptAs(t, rows, ofUser)
		parts = append(parts, func() {
			put()
			for owner := range t {
				t[owner] = maps.Clone(t[owner])
			}
		})
	}
	posts := make(map[storage.PostID]post)
	for id, p := range s.posts {
		posts[id] = *p
	}
	moderation := slices.Clone(s.moderation)
	parts = append(parts, func() {
		ofShard := func(e storage.ModerationEntry) bool { return ofUser(e.Owner) }
		others := slices.DeleteFunc(slices.Clone(s.moderation), ofShard)
		s.moderation = slices.Concat(others, slices.DeleteFunc(slices.Clone(moderation), func(e storage.ModerationEntry) bool { return !ofShard(e) }))
		maps.DeleteFunc(s.posts, func(id storage.PostID, _ *post) bool { return ofUser(id.Author) })
		for id, p := range posts {
			if ofUser(id.Author) {
				s.posts[id] = &p
			}
		}
	})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, part := range parts {
			part()
		}
	}
}

// kept keeps the rows of a map that are of a shard, and puts them in the place of those there.
func kept[K comparable, V any](rows map[K]V, of func(K) bool) (put func()) {
	return keptAs(rows, maps.Clone(rows), of)
}

func keptAs[K comparable, V any](rows, as map[K]V, of func(K) bool) (put func()) {
	return func() {
		maps.DeleteFunc(rows, func(k K, _ V) bool { return of(k) })
		for k, v := range as {
			if of(k) {
				rows[k] = v
			}
		}
	}
}
