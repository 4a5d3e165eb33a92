package changes_test

import (
	"testing"

	"kith/files/changes"
	"kith/graph/declared"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestRestoredDetailsAreTold also to who has read the row before: an import writes a relation, and then when it ends.
func TestRestoredDetailsAreTold(t *testing.T) {
	t.Parallel()
	onEachLog(t, func(t *testing.T, store *sqlstore.Store, _ []string) {
		ctx, ids := t.Context(), ofShard(store, 0, 2)
		must.All(t, store.CreateUsers(ctx, []storage.User{{ID: ids[0], Handle: "ada", Name: "Ada"}, {ID: ids[1], Handle: "ben", Name: "Ben"}}))
		row := storage.RelationRow{Edge: storage.Pair{From: ids[0], To: ids[1], Item: declared.FirstKind}.Edge(storage.Related, 5e6), Detail: storage.Detail{EndsAt: 9e6, Attributes: `{"a":1}`}}
		must.All(t, store.Apply(ctx, storage.Relations, []storage.Edge{row.Edge}, storage.IfAbsent))
		_, between := read(t, store, "")
		must.All(t, store.Restore(ctx, storage.Restored{Details: []storage.RelationRow{row}}))
		events, _ := read(t, store, between, changes.Relations)
		check.That(t, len(events) == 1 && events[0].Data["ends_at"] == "9" && events[0].Data["attributes"] == `{"a":1}`, "%+v", events)
	})
}
