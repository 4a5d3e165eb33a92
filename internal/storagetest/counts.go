package storagetest

import (
	"testing"

	"kith/storage"
)

// counts: looking counts up. How writes change them is in applyCounts.
type counts struct{ *harness }

func (s counts) AnEmptyBatchHasNoResults(t *testing.T) {
	answers(t, storage.CountLookups.Read(t.Context(), s.store), 0)
	answers(t, storage.CountLookups.Read(t.Context(), s.store), 0)
}

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

func (s counts) AKeyThatOccursTwiceIsAnsweredTwice(t *testing.T) {
	owners, gone := s.followers(t, 3), s.id()
	results := storage.CountLookups.Read(t.Context(), s.store, owners[2], gone, owners[1], owners[2], gone)
	wantFound(t, results, true, false, true, true, false)
	wantEqual(t, "again", results[3].Value, results[0].Value)
	wantEqual(t, "followings", results[3].Value.Following, 2)
}

func (s counts) ALargeBatchIsAnswered(t *testing.T) {
	owners := s.followers(t, 5)
	ids := s.ids(many)
	for i := 0; i < many; i += 3 {
		ids[i] = owners[i%len(owners)]
	}
	results := storage.CountLookups.Read(t.Context(), s.store, ids...)
	answers(t, results, many)
	for i, result := range results {
		if known := i%3 == 0; result.Found != known {
			t.Fatalf("key %d: found is %v, want %v", i, result.Found, known)
		}
		if i%3 == 0 && result.Value.Following != int64(i%len(owners)) {
			t.Fatalf("key %d: got %+v, want %d followings", i, result.Value, i%len(owners))
		}
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
