package sqlstore

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/must"
	"kith/storage"
)

// An import that was killed has left a claim. When it goes on, somebody registers with the handle before it has made its user: only one of
// the two gets the handle.
func TestAnOldClaimIsRenewedBeforeItsUserIsMade(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		now := storage.MicrosOf(time.Now())
		mine := storage.User{ID: 7, Handle: "ada", Name: "A", CreatedAt: 1, UpdatedAt: 1}
		theirs := storage.User{ID: 8, Handle: "ada", Name: "B", CreatedAt: now, UpdatedAt: now}
		other := openSmall(t, location, nil)
		var registered error
		asked := false
		importing := openSmall(t, location, func(_ context.Context, st Statement) {
			if strings.HasPrefix(st.Text, sqlUsers[:len("\nSELECT user_id, created_at")]) && !asked { // who has the handles that are claimed
				asked = true
				registered = other.Register(t.Context(), theirs, "hash")
			}
		})
		must.OK(t, importing.Claim(t.Context(), "ada", mine.ID, now-storage.ClaimTTL-1))
		made := importing.CreateUsers(t.Context(), []storage.User{mine})[0]
		if !asked || made.Value == (registered == nil) {
			t.Errorf("imported: %+v; registered: %v", made, registered)
		}
		owner, err := storage.HandleLookups.Get(t.Context(), other, "ada")
		must.OK(t, err)
		if want := map[bool]storage.UserID{true: mine.ID, false: theirs.ID}[made.Value]; owner != want {
			t.Errorf("the handle is that of user %s, not %s", owner, want)
		}
	})
}

// An import that is held up after it has claimed a handle makes no user any more once others may have taken the claim over.
func TestNoUserIsMadeWhoseClaimMayBeAnothers(t *testing.T) {
	location := "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	synctest.Test(t, func(t *testing.T) {
		mine := storage.User{ID: 7, Handle: "ada", Name: "A", CreatedAt: 1, UpdatedAt: 1}
		other := openSmall(t, location, nil)
		heldUp := false
		importing := openSmall(t, location, func(_ context.Context, st Statement) {
			if st.Text == sqlHandles && !heldUp { // whose handle it is, once it is claimed
				heldUp = true
				time.Sleep(2 * time.Minute)
				now := storage.MicrosOf(time.Now())
				must.OK(t, other.Register(t.Context(), storage.User{ID: 8, Handle: "ada", Name: "B", CreatedAt: now, UpdatedAt: now}, "hash"))
			}
		})
		must.OK(t, importing.Claim(t.Context(), "ada", mine.ID, storage.MicrosOf(time.Now())))
		made := importing.CreateUsers(t.Context(), []storage.User{mine})[0]
		if !heldUp || made.Err == nil {
			t.Errorf("imported: %+v, want an error", made)
		}
		if r := storage.UserLookups.Read(t.Context(), other, mine.ID)[0]; r.Found || r.Err != nil {
			t.Errorf("two users have the handle: %+v", r)
		}
	})
}
