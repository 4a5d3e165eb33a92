package social

import (
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// The question whether a follow may be shown names first the user who follows.
func TestEdgesAmongAsksWhoFollowsWhom(t *testing.T) {
	store := oracle.New()
	store.Apply(t.Context(), storage.Forward, []storage.Edge{{From: 5, To: 6, Type: storage.Following, UpdateTime: 1}, {From: 7, To: 5, Type: storage.Following, UpdateTime: 1}}, storage.IfNewer)
	var asked [][2]int
	among, err := New(store, 0, nil).EdgesAmong(t.Context(), []storage.UserID{5, 6, 7}, 10, func(from, to int) bool {
		asked = append(asked, [2]int{from, to})
		return from == 2
	})
	slices.SortFunc(asked, func(a, b [2]int) int { return a[0] - b[0] })
	check.That(t, err == nil && slices.Equal(asked, [][2]int{{0, 1}, {2, 0}}) && len(among.Followings[0]) == 0 && slices.Equal(among.Followings[2], []int{0}), "%+v, %v; asked for %v", among, err, asked)
}
