package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
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
		must.OK(t, importing.Claim(t.Context(), "ada", mine.ID, now-judge.ClaimTTL-1))
		made := importing.CreateUsers(t.Context(), []storage.User{mine})[0]
		check.That(t, asked && made.Value != (registered == nil), "imported: %+v; registered: %v", made, registered)
		owner, err := storage.HandleLookups.Get(t.Context(), other, "ada")
		must.OK(t, err)
		want := map[bool]storage.UserID{true: mine.ID, false: theirs.ID}[made.Value]
		check.That(t, owner == want, "the handle is that of user %s, not %s", owner, want)
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
		check.That(t, heldUp && made.Err != nil, "imported: %+v, want an error", made)
		r := storage.UserLookups.Read(t.Context(), other, mine.ID)[0]
		check.That(t, !r.Found && r.Err == nil, "two users have the handle: %+v", r)
	})
}

// A shard refuses to write, as one that has become read-only does. Whoever registers again at once gets another id and the handle.
func TestAHandleIsFreeWhoseUserCouldNotBeMade(t *testing.T) {
	at := t.TempDir()
	s := openSmall(t, "sqlite:"+filepath.Join(at, "a.db")+";"+filepath.Join(at, "b.db"), nil)
	now := storage.MicrosOf(time.Now())
	const handle = "ada"
	there, elsewhere := storage.User{ID: 1, Handle: handle, Name: "A", CreatedAt: now}, storage.User{ID: 1, Handle: handle, Name: "A", CreatedAt: now}
	for s.shards.Of(there.ID) != s.shards.OfHandle(handle) {
		there.ID++
	}
	for s.shards.Of(elsewhere.ID) == s.shards.OfHandle(handle) {
		elsewhere.ID++
	}
	_, err := s.db.Shard(s.shards.Of(elsewhere.ID)).Write.ExecContext(t.Context(), "CREATE TRIGGER refuse BEFORE INSERT ON users BEGIN SELECT RAISE(ABORT, 'refused'); END")
	must.OK(t, err)
	err = s.Register(t.Context(), elsewhere, "hash")
	must.That(t, err != nil && !errors.Is(err, storage.ErrHandleTaken), "the first time: %v", err)
	must.OK(t, s.Register(t.Context(), there, "hash"))
}

// Users are made in parts. The handles of those that come late are claimed when their turn comes, not when the call begins: others may take
// over a claim that is older.
func TestLateUsersClaimTheirHandlesLate(t *testing.T) {
	location := "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	synctest.Test(t, func(t *testing.T) {
		const pause = 20 * time.Second
		var once sync.Once
		s := openSmall(t, location, func(_ context.Context, st Statement) {
			if st.Lookup == "users.exist" {
				once.Do(func() { time.Sleep(pause) })
			}
		})
		users := make([]storage.User, createdAtOnce+1)
		for i := range users {
			users[i] = storage.User{ID: storage.UserID(i + 1), Handle: fmt.Sprintf("u%d", i+1), Name: "U", CreatedAt: 1, UpdatedAt: 1}
		}
		for i, r := range s.CreateUsers(t.Context(), users) {
			must.That(t, r.Value && r.Err == nil, "user %d: %+v", i+1, r)
		}
		claimed := func(handle string) (at int64) {
			must.OK(t, s.db.Query(t.Context(), "claims", 0, 1, `SELECT claimed_at FROM handles WHERE handle = ?`, []any{handle}, db.EachRow(func(at *int64) []any { return []any{at} }, func(n int64) { at = n })))
			return at
		}
		check.Least(t, "µs between the claims of the two parts", claimed(users[createdAtOnce].Handle)-claimed("u1"), pause.Microseconds())
	})
}
