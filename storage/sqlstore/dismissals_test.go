package sqlstore_test

import (
	"database/sql"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
)

// Dismissals of an older version become relations, but for those that hold no more. The migration goes on wherever it was killed.
func TestDismissalsOfAnOlderVersionAreRelations(t *testing.T) {
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)
	file := sqlite(t, 1)
	for location, driver := range map[string][2]string{
		mysql(dsns): {"mysql", dsns[0]},
		file:        {"sqlite", strings.TrimPrefix(file, "sqlite:")},
	} {
		t.Run(driver[0], func(t *testing.T) {
			db, err := sql.Open(driver[0], driver[1])
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			exec := func(texts ...string) {
				t.Helper()
				for _, text := range texts {
					if _, err := db.ExecContext(t.Context(), text); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
				}
			}
			store := open(t, location)
			store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "one"}, {ID: 2, Handle: "two"}, {ID: 3, Handle: "three"}})
			text, err := os.ReadFile("internal/db/migrations/" + driver[0] + "/00116_dismissals.sql")
			if err != nil {
				t.Fatal(err)
			}
			statements := strings.Split(strings.TrimSuffix(strings.TrimSpace(string(text)), ";"), ";\n")
			if len(statements) != 4 {
				t.Fatalf("%d statements", len(statements))
			}
			now := time.Now()
			at := func(days int) storage.Micros { return storage.MicrosOf(now.AddDate(0, 0, -days)) }
			lasts := storage.Micros(storage.Dismissals.Lasts.Microseconds())
			for killed := range statements {
				exec("DELETE FROM relation", "DELETE FROM relation_inbox", "DELETE FROM relation_counts", "DELETE FROM kith_migrations WHERE version_id >= 116")
				for _, row := range []struct{ from, to, days int }{{1, 2, 1}, {1, 3, 5}, {1, 99, 9}, {2, 3, 179}, {2, 1, 181}, {3, 1, 400}} {
					exec(fmt.Sprintf("INSERT INTO suggestion_dismissals (user_id, dismissed_id, at) VALUES (%d, %d, %d)", row.from, row.to, at(row.days)))
				}
				exec(statements[:killed]...)
				store := open(t, location)
				for owner, want := range map[storage.UserID][]storage.Edge{
					1: {{From: 1, To: 2, UpdateTime: at(1)}, {From: 1, To: 3, UpdateTime: at(5)}, {From: 1, To: 99, UpdateTime: at(9)}}, 2: {{From: 2, To: 3, UpdateTime: at(179)}}, 3: nil,
				} {
					for i := range want {
						want[i].Type, want[i].Post = storage.Related, storage.Dismissals.Number
					}
					got := store.Pages(t.Context(), storage.Relations, []storage.PageQuery{{Owner: owner, Post: storage.Dismissals.Number, Limit: 9}})[0]
					if got.Err != nil || fmt.Sprint(got.Value) != fmt.Sprint(want) {
						t.Errorf("killed before statement %d: user %d has dismissed %v, %v, want %v", killed, owner, got.Value, got.Err, want)
					}
					for _, e := range want {
						if d := store.Details(t.Context(), []storage.Pair{e.Pair()})[0]; d.Value != (storage.Detail{EndsAt: e.UpdateTime + lasts}) {
							t.Errorf("%v has %+v", e, d)
						}
						if inbox := store.Edges(t.Context(), storage.RelationInbox, []storage.Pair{e.Pair()})[0]; inbox.Found != (e.To != 99) || inbox.Found && inbox.Value != e {
							t.Errorf("the other side of %v is %+v", e, inbox)
						}
					}
				}
				var counts []storage.KindCount
				for id := range storage.UserID(3) {
					counts = append(counts, store.KindCounts(t.Context(), []storage.OwnerKind{{Owner: id + 1, Kind: storage.Dismissals.Number}})[0].Value)
				}
				if want := []storage.KindCount{{Outgoing: 3}, {Outgoing: 1, Incoming: 1}, {Incoming: 2}}; !reflect.DeepEqual(counts, want) {
					t.Errorf("killed before statement %d: counts %+v, want %+v", killed, counts, want)
				}
				for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
					if wrong, err := store.WrongItemCounts(t.Context(), side, 0, storage.OwnerRange{UpTo: 1 << 62}); err != nil || len(wrong) > 0 {
						t.Errorf("wrong counts %v, %v", wrong, err)
					}
				}
				var left int
				if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM suggestion_dismissals").Scan(&left); err != nil || left > 0 {
					t.Errorf("%d rows are left, %v", left, err)
				}
			}
		})
	}
}
