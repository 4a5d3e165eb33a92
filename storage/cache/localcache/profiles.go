package localcache

import (
	"context"

	"kith/storage"
)

// profile is a user with its counts, or the fact that there is neither.
type profile struct {
	lifetime
	storage.Profile
}

func (p *profile) bytes() int {
	return 200 + len(p.User.Handle) + len(p.User.Name) + len(p.User.Bio) + len(p.User.AvatarURL)
}

func (p *profile) result() storage.Result[storage.Profile] {
	return storage.Result[storage.Profile]{Value: p.Profile, Found: p.Exists || p.Counted}
}

// Users implements [storage.UserReader].
func (c *Cache) Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	if c.Mode() == Off || ctx.Err() != nil {
		return c.Reader.Users(ctx, ids)
	}
	return storage.Each(c.fetchProfiles(ctx, ids), func(r storage.Result[storage.Profile]) storage.Result[storage.User] {
		return storage.Result[storage.User]{Value: r.Value.User, Found: r.Value.Exists, Err: r.Err}
	})
}

// Counts implements [storage.CountReader].
func (c *Cache) Counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	if c.Mode() == Off || ctx.Err() != nil {
		return c.Reader.Counts(ctx, ids)
	}
	return storage.Each(c.fetchProfiles(ctx, ids), func(r storage.Result[storage.Profile]) storage.Result[storage.Counts] {
		return storage.Result[storage.Counts]{Value: r.Value.Counts, Found: r.Value.Counted, Err: r.Err}
	})
}

// Profiles reads users and their counts together.
func (c *Cache) Profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	if c.Mode() == Off || ctx.Err() != nil {
		return c.below.Profiles(ctx, ids)
	}
	return c.fetchProfiles(ctx, ids)
}

func (c *Cache) fetchProfiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return fetch(ctx, c, &c.profiles, source[storage.UserID, storage.Profile]{profileKind, profileKey, known(c, (*profile).result), c.source.Profiles, c.keepProfile, false}, ids)
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

// Blocks implements [storage.RelationReader].
func (c *Cache) Blocks(ctx context.Context, users []storage.UserID) []storage.Result[[]storage.UserID] {
	if c.Mode() == Off || ctx.Err() != nil {
		return c.Reader.Blocks(ctx, users)
	}
	keepBlocks := func(k key, r storage.Result[[]storage.UserID], _ []storage.Edge) storage.Result[[]storage.UserID] {
		c.set(k, &blockList{c.lives(keep), r.Value})
		return r
	}
	return fetch(ctx, c, &c.blocks, source[storage.UserID, []storage.UserID]{blocksKind, blocksKey, known(c, (*blockList).result), c.Reader.Blocks, keepBlocks, false}, users)
}
