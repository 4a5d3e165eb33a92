package localcache

import (
	"context"
	"encoding/binary"
	"hash/maphash"

	"kith/storage"
)

// profilesFrom are users with their counts, read from a store before a request has asked for them.
func (c *Cache) profilesFrom(store storage.Bundler) *source[storage.UserID, storage.Profile] {
	from := c.profiles
	from.read, from.warming = readFrom(store, storage.ProfileLookups), true
	return &from
}

// blocks is the form of the users who block or are blocked by a user, ascending. Of a famous user they may be many.
var blocks = inPlace[storage.UserID]()

// readUserIDs answers [storage.HandleLookups]. The answer stays true as long as that user has the handle, and the user is kept as
// others are. An answer that the handle is nobody's is kept until somebody is created or renamed.
func (c *Cache) readUserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	keep := func(k key, r storage.Result[storage.UserID], _ []storage.Edge, may bool) storage.Result[storage.UserID] {
		if r.Found {
			k.stamp = 0
		}
		if may {
			c.set(k, &said{c.livesIf(r.Found), binary.NativeEndian.AppendUint64(nil, uint64(r.Value))})
		}
		return r
	}
	// A known handle is found by itself, before there is a key.
	none := func(key, *storage.Result[storage.UserID]) bool { return false }
	from := source[string, storage.UserID]{&c.handles, c, handleKind, c.handleKey, none, readFrom(c.store, storage.HandleLookups), keep, false}
	hits := len(handles)
	results := knownOr(ctx, handles, c.handle, func(ctx context.Context, rest []string) []storage.Result[storage.UserID] {
		hits -= len(rest)
		return from.fetch(ctx, rest)
	})
	c.asked(handleKind, hits, 0)
	return results
}

// handleKey is where it is kept that a handle is nobody's; without the stamp, whose it is.
func (c *Cache) handleKey(handle string) key {
	return key{kind: handleKind, number: int64(maphash.String(c.seed, handle)), stamp: c.names.Load() + 1}
}

// handle says whose a handle is, if that is known.
func (c *Cache) handle(handle string, r *storage.Result[storage.UserID]) bool {
	k := c.handleKey(handle)
	if _, none := get[*said](c, k); none {
		return true
	}
	k.stamp = 0
	whose, known := get[*said](c, k)
	if !known {
		return false
	}
	*r = found(storage.UserID(binary.NativeEndian.Uint64(whose.data)))
	s, there := get[*said](c, profileKey(r.Value))
	return there && s.profile(r.Value).User.Handle == handle
}
