package social_test

import (
	"path/filepath"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/social"
	"kith/storage"
	"kith/storage/sqlstore"
)

// Relations of a user who is being deleted cannot end one by one. Those of others on the shard, whose time came later, end all the same.
func TestOneUserHoldsUpNoEndsOfOthers(t *testing.T) {
	for name, location := range map[string]string{"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "kith.db"), "MariaDB": "mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]} {
		t.Run(name, func(t *testing.T) {
			store := opened.Store(t, sqlstore.Config{Location: location})
			users := make([]storage.User, 600)
			for i := range users {
				id := storage.UserID(i + 1)
				users[i] = storage.User{ID: id, Handle: "u" + id.String()}
			}
			must.All(t, store.CreateUsers(t.Context(), users))
			began := time.Now()
			var many []storage.EdgeChange // of the first one: more than are read at once
			for id := storage.UserID(5); id <= 600; id++ {
				many = append(many, storage.EdgeChange{To: id, Item: storage.Mutes.Number, Type: storage.Related, At: storage.MicrosOf(began), Detail: storage.DetailChange{EndsAt: storage.MicrosOf(began)}})
			}
			must.All(t, store.ChangeEdges(t.Context(), storage.Relations, 1, many, storage.ChangeOptions{Inverse: true}))
			for id := storage.UserID(1); id <= 3; id++ {
				ends := storage.DetailChange{EndsAt: storage.MicrosOf(began.Add(time.Duration(id) * time.Second))} // the first one's are read first
				change := storage.EdgeChange{To: 4, Item: storage.Mutes.Number, Type: storage.Related, At: storage.MicrosOf(began), Detail: ends}
				must.OK(t, store.ChangeEdges(t.Context(), storage.Relations, id, []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: true})[0].Err)
			}
			_, err := store.SetState(t.Context(), 1, storage.Deleting, storage.MicrosOf(began))
			must.OK(t, err)
			relations := social.NewRelations(social.Relations{Store: store, Redundancy: &post{inline: true, seen: map[storage.Row]bool{}}, Now: func() time.Time { return began.Add(time.Minute) }})
			check.Is(t, "the end that was refused", relations.EndDue(t.Context(), 0, func() bool { return true }), storage.ErrUserUnknown)
			for id := storage.UserID(1); id <= 3; id++ {
				for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
					row := storage.EdgeLookups[side].Read(t.Context(), store, storage.Mutes.Pair(id, 4))[0]
					check.That(t, row.Err == nil && (row.Value.Type == storage.Related) == (id == 1), "%s of user %s: %+v, %v", side, id, row.Value, row.Err)
				}
			}
			counts := storage.KindLookups.Read(t.Context(), store, storage.OwnerKind{Owner: 4, Kind: storage.Mutes.Number})[0]
			check.Equal(t, "mutes that are counted at their end", counts.Value.Incoming, 1)
		})
	}
}
