package storagetest

import (
	"testing"

	"kith/storage"
)

// counts: looking counts up. How writes change them is in applyCounts.
type counts struct{ *harness }

func (s counts) UnknownIDsAreNotFound(t *testing.T) {
	known, unknown := s.newUsers(t, 2), s.ids(2)
	results := storage.CountLookups.Read(t.Context(), s.store, unknown[0], known[0].ID, known[1].ID, unknown[1])
	wantFound(t, results, false, true, true, false)
}

func (s counts) EachKeyIsAnsweredAtItsIndex(t *testing.T) {
	const n = 9
	owners := s.followers(t, n)
	for i, got := range found(t, storage.CountLookups.Read(t.Context(), s.store, owners...), n) {
		wantEqual(t, "followings", got.Following, int64(i))
		wantEqual(t, "followers", got.Follower, int64(n-i))
	}
}

// followers makes n users: the i-th follows i others and is followed by n−i.
func (s counts) followers(t *testing.T, n int) []storage.UserID {
	t.Helper()
	owners, peers := idsOf(s.newUsers(t, n)), s.ids(n)
	var forward, inverse []storage.Edge
	for i, owner := range owners {
		for j := range i {
			forward = append(forward, follow(storage.Forward, owner, peers[j], j))
		}
		for j := range n - i {
			inverse = append(inverse, follow(storage.Inverse, owner, peers[j], j))
		}
	}
	s.apply(t, storage.Forward, forward...)
	s.apply(t, storage.Inverse, inverse...)
	return owners
}
