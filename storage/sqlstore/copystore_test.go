package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/doctor"
	"kith/storage/sqlstore"
)

// A store in one file becomes one of four databases on two servers while it is written to, and is
// copied back into three files. All data is as the writers were answered, and the old store accepts no writes.
func TestAStoreIsCopiedUnderLoad(t *testing.T) {
	t.Parallel()
	locations := []string{mysql(testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2)), sqlite(t, 3)}
	if testenv.Engine() == "tidb" { // it is one shard, which cannot be copied
		locations = []string{mysql(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1))}
	}
	g := newGrower(t, sqlite(t, 1), "", 300)
	secret, err := g.mover.Secret(t.Context(), "tokens")
	must.OK(t, err)
	for _, location := range locations {
		writing, stop := context.WithCancel(t.Context())
		writers := g.write(writing, 3)
		for before := g.writes.Load(); g.writes.Load() < before+300; {
			time.Sleep(time.Millisecond) // until there is something to copy
		}
		to := open(t, location)
		g.late.Store(true) // writes that come after the copy are refused, which is no failure
		report, err := g.mover.CopyTo(t.Context(), to, sqlstore.MoveConfig{Token: location[:6]})
		stop()
		writers.Wait()
		must.OK(t, err)
		check.That(t, report.Repaired == 0, "%d rows had been written without a note", report.Repaired)
		t.Logf("%d rows, %d again, %d compared, no writes for %s of %s", report.Rows, report.Again, report.Compared, report.Waited, report.Took)
		check.Equal(t, "what the copy has", rowsOf(t, to.Addresses()), rowsOf(t, g.mover.Addresses()))
		// A write does not wait, as it would for buckets that are about to move.
		late := g.mover.ChangeEdges(t.Context(), storage.Forward, 1, []storage.EdgeChange{{To: 2, Type: storage.Blocking, At: storage.MicrosOf(time.Now())}}, storage.ChangeOptions{})[0]
		if !errors.Is(late.Err, storage.ErrUnavailable) || !strings.Contains(late.Err.Error(), "copied to another one") {
			t.Errorf("a write to the store that has been copied: %v", late.Err)
		}
		again, err := to.Secret(t.Context(), "tokens")
		check.That(t, err == nil && string(again) == string(secret), "the copy's secret is another (%v)", err)
		g.late.Store(false)
		g.use(to, location)
		g.check()
	}
}

// rowsOf describes the rows of a store's tables: their number, and a hash of everything in them except
// what packed lists need.
func rowsOf(t *testing.T, addresses []string) string {
	t.Helper()
	var text strings.Builder
	for _, table := range []string{
		"users", "handles", "following", "follower", "friend_request", "friend_request_inbox", "edge_marks", "post", "post_counts", "comment", "identities",
		"user_counts", "user_states", "moderation_log", "kith_secrets",
	} {
		var all []string
		for _, address := range addresses {
			all = append(all, rowsIn(t, address, table)...)
		}
		slices.Sort(all)
		hash := fnv.New32a()
		for _, row := range all {
			fmt.Fprintln(hash, row)
		}
		fmt.Fprintf(&text, "%s %d %x ", table, len(all), hash.Sum32())
	}
	return text.String()
}

// rowsIn returns the rows of one table, each as text with the names of its columns.
func rowsIn(t *testing.T, address, table string) (list []string) {
	t.Helper()
	db := connect(t, address)
	defer db.Close()
	rows, err := db.Query("SELECT * FROM " + table)
	must.OK(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must.OK(t, err)
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range into {
		into[i] = &values[i]
	}
	for rows.Next() {
		must.OK(t, rows.Scan(into...))
		var row []string
		for i, c := range columns {
			if !slices.Contains([]string{"packed", "packed_version", "follower_class"}, c) {
				row = append(row, fmt.Sprintf("%s=%q", c, values[i].String))
			}
		}
		slices.Sort(row)
		list = append(list, strings.Join(row, " "))
	}
	return list
}

// TestAnInterruptedCopyIsNamed: kith shards resume does not go on with it.
func TestAnInterruptedCopyIsNamed(t *testing.T) {
	t.Parallel()
	location := sqlite(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	_, err := open(t, location).CopyTo(ctx, open(t, sqlite(t, 1)), sqlstore.MoveConfig{Token: "test", Step: func(at string) {
		if at == "copy users" {
			stop()
		}
	}})
	must.That(t, errors.Is(err, context.Canceled), "%v", err)
	found, _ := sqlstore.Examine(t.Context(), sqlstore.Config{Location: location}, nil)
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Level == doctor.Warn && f.Check == "moves" && strings.Contains(f.Says, "to another store") && strings.Contains(f.Mend, "kith copy goes on") && !strings.Contains(f.Mend, "resume")
	}) {
		t.Errorf("found: %+v", found)
	}
}
