package localcache

import (
	"context"
	"encoding/binary"
	"hash/maphash"

	"kith/storage"
)

// profile is a user with its counts, or the fact that there is neither.
type profile struct {
	lifetime
	storage.Profile
}

func (p *profile) bytes() int {
	size := 200 + len(p.User.Handle)
	for _, text := range p.User.Texts() {
		size += len(*text)
	}
	return size
}

func (p *profile) result() storage.Result[storage.Profile] {
	return storage.Result[storage.Profile]{Value: p.Profile, Found: p.Exists || p.Counted}
}

// profilesFrom are users with their counts, read from a store.
func (c *Cache) profilesFrom(store storage.Bundler, warming bool) *source[storage.UserID, storage.Profile] {
	return &source[storage.UserID, storage.Profile]{&c.profiles, c, profileKind, profileKey, known(c, (*profile).result), readFrom(store, storage.ProfileLookups), c.keepProfile, warming}
}

func (c *Cache) fetchProfiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return c.profilesFrom(c.source, false).fetch(ctx, ids)
}

func (c *Cache) keepProfile(k key, r storage.Result[storage.Profile], _ []storage.Edge) storage.Result[storage.Profile] {
	c.set(k, &profile{c.livesIf(r.Value.Exists), r.Value})
	return r
}

// blockList is the users who block or are blocked by a user, ascending.
type blockList struct {
	lifetime
	users []storage.UserID
}

func (b *blockList) bytes() int { return 48 + 8*len(b.users) }

func (b *blockList) result() storage.Result[[]storage.UserID] {
	return storage.Result[[]storage.UserID]{Value: b.users, Found: true}
}

func (c *Cache) keepBlocks(k key, r storage.Result[[]storage.UserID], _ []storage.Edge) storage.Result[[]storage.UserID] {
	c.set(k, &blockList{c.lives(keep), r.Value})
	return r
}

// readUserIDs answers [storage.HandleLookups]. Whose a handle is stays true as long as that user, which is kept as others are, has the
// handle. That it is nobody's is kept until somebody is created or renamed.
func (c *Cache) readUserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	keep := func(k key, r storage.Result[storage.UserID], _ []storage.Edge) storage.Result[storage.UserID] {
		if r.Found {
			k.stamp = 0
		}
		c.set(k, &said{c.livesIf(r.Found), binary.NativeEndian.AppendUint64(nil, uint64(r.Value))})
		return r
	}
	// What is known is found by the handle itself, before there is a key.
	none := func(key) (r storage.Result[storage.UserID], ok bool) { return r, false }
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
func (c *Cache) handle(handle string) (r storage.Result[storage.UserID], ok bool) {
	k := c.handleKey(handle)
	if _, none := get[*said](c, k); none {
		return r, true
	}
	k.stamp = 0
	whose, known := get[*said](c, k)
	if !known {
		return r, false
	}
	id := storage.UserID(binary.NativeEndian.Uint64(whose.data))
	p, there := get[*profile](c, profileKey(id))
	return storage.Result[storage.UserID]{Value: id, Found: true}, there && p.User.Handle == handle
}
