package reconcile_test

import (
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore"
)

// A store has shards on MariaDB and on MySQL. Follows between them are replicated by both binlogs, all modes find
// lost rows and repair them, and buckets move from one engine to the other.
func TestAStoreOfMariaDBAndMySQL(t *testing.T) {
	t.Parallel()
	testenv.OnlyOn(t, "it is about MySQL beside MariaDB", "mysql")
	mariaDB := testenv.Database(t, "mariadb")
	dsns := append(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1), mariaDB.CreateDatabase(t, "kith"))
	w := onServers(t, dsns)
	w.incremental(t, nil) // begins
	lost := w.writeSome(t, newRand(t), 300)
	across := [2]int{}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for ordinal := range w.Shards() {
			err := w.GroupRows(t.Context(), side, ordinal, sides.OwnerRange{UpTo: 1<<63 - 1}, sides.Cut{Parts: 1}, everyClass(), func(e storage.Edge) {
				if w.ShardOf(e.From) == 0 && w.ShardOf(e.To) == 1 {
					across[0]++
				}
				if w.ShardOf(e.From) == 1 && w.ShardOf(e.To) == 0 {
					across[1]++
				}
			})
			must.OK(t, err)
		}
	}
	check.That(t, across[0] > 0 && across[1] > 0, "rows across: %v", across)
	w.arrived(t, len(lost))
	r := w.incremental(t, nil)
	check.That(t, r.Repaired[reconcile.Missing] == len(lost) && r.Left() == 0, "%+v, %d were lost", r, len(lost))
	clean := func(when string) {
		t.Helper()
		cfg := reconcile.FullConfig{Store: w.Store, Window: 200 * time.Millisecond, MaxLoad: 1, Restart: true}
		r, err := reconcile.Full(t.Context(), cfg)
		check.That(t, err == nil && r.Total() == 0 && r.Rows[storage.Forward] > 0, "%s: %+v, %v", when, r, err)
	}
	clean("repaired")
	for _, plan := range []sqlstore.Move{
		{Buckets: storage.BucketRange{First: 0, Last: 99}, From: 0, To: 1}, {Buckets: storage.BucketRange{First: 900, Last: 1023}, From: 1, To: 0},
	} {
		r, err := w.Move(t.Context(), plan, sqlstore.MoveConfig{Token: "test", Keep: 10 * time.Millisecond})
		must.That(t, err == nil && r.Repaired == 0, "%s: %+v, %v", plan, r, err)
	}
	clean("moved")
}

// everyClass chooses all groups of the coarsest cut.
func everyClass() storage.Choice {
	all := make([]int, sides.Classes)
	for i := range all {
		all[i] = i
	}
	return sides.Choose(sides.Classes, all)
}
