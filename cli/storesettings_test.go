package cli

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"kith/cluster"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage/doctor"
	"kith/storage/sqlstore"
)

// A signal while a starting process looks for others ends it as a signal does, and not as a conflict that a service manager
// would not start again.
func TestASignalDuringTheLookForOthers(t *testing.T) {
	t.Parallel()
	s := &Settings{Store: "sqlite:" + filepath.Join(t.TempDir(), "kith.db"), told: map[string]string{"friend-request-ttl": "720h"}}
	ctx, signal := context.WithCancel(t.Context())
	_, err := s.OpenStore(ctx, sqlstore.Config{OnStatement: func(_ context.Context, st sqlstore.Statement) {
		if st.Lookup == "leases" { // who else runs
			signal()
		}
	}})
	check.That(t, errors.Is(err, context.Canceled) && !errors.As(err, new(unusable)), "%v", err)
}

// TestAnotherShardChangesTheMode: with a second shard of MariaDB, what is not set becomes binlog. Gateways that run on in sync say that they have
// to be started again.
func TestAnotherShardChangesTheMode(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)
	s := &Settings{Store: "mysql:" + dsns[0]}
	store, err := s.OpenStore(t.Context(), sqlstore.Config{})
	must.OK(t, err)
	t.Cleanup(func() { _ = store.Close() })
	must.OK(t, s.agrees(t.Context(), store, new(cluster.Redis)))
	_, err = store.AddShard(t.Context(), dsns[1])
	must.OK(t, err)
	check.Says(t, "after the second shard", s.agrees(t.Context(), store, new(cluster.Redis)),
		`redundancy: this process has to be started again: it is "binlog" in the store, and was "sync"`)
}

// What a store has set otherwise fails. What nobody has set is recorded by a start if nothing else runs.
func TestDoctorOnSettingsOfTheStore(t *testing.T) {
	t.Parallel()
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	done(t, "migrate", store, "--max-following=7")
	found, code := diagnosed(t, store, "--friend-request-ttl=30d")
	expect(t, found, doctor.Warn, "settings", "--friend-request-ttl 720h: this store says 2160h", "a start while nothing else runs records")
	check.That(t, code == 0, "it starts, and doctor fails: %+v", found)
	done(t, "migrate", store, "--friend-request-ttl=30d")
	found, _ = diagnosed(t, store, "--friend-request-ttl=20d")
	expect(t, found, doctor.Fail, "settings", "--friend-request-ttl 480h: this store says 720h", "leave the setting out")
}

// TestARefusedCopyLeavesTheOtherStore: a store that was named by mistake keeps its settings. To run the command again is of no use.
func TestARefusedCopyLeavesTheOtherStore(t *testing.T) {
	t.Parallel()
	from, to := "sqlite:"+filepath.Join(t.TempDir(), "from.db"), "sqlite:"+filepath.Join(t.TempDir(), "to.db")
	for store, most := range map[string]string{from: "7", to: "8"} {
		done(t, "migrate", "--store", store, "--max-following", most)
	}
	edges := graph(t, "1 2\n")
	done(t, "import", edges, "--store", to)
	code, _, complaints := ran(t, "copy", "--store", from, to)
	must.That(t, code == 1 && strings.Contains(complaints, "has users") && !strings.Contains(complaints, "same command"), "%v %v", code, complaints)
	_, out, complaints := ran(t, "settings", "get", "max-following", "--store", to)
	check.That(t, strings.HasPrefix(out, "max-following         8 "), "the setting is %s %s", out, complaints)
}

// TestACopyThatGetsNoSettings: while the copy does not take the settings, nothing is copied, and the store takes writes. The same command goes on.
func TestACopyThatGetsNoSettings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "to.db")
	from, to := "sqlite:"+filepath.Join(t.TempDir(), "from.db"), "sqlite:"+file
	for store, args := range map[string][]string{from: {"--max-following=7"}, to: nil} {
		done(t, append([]string{"migrate", "--store", store}, args...)...)
	}
	target, err := sql.Open("sqlite", file)
	must.OK(t, err)
	defer target.Close()
	_, err = target.Exec(`CREATE TRIGGER refuses BEFORE INSERT ON kith_checkpoints WHEN NEW.name = 'settings of the store' BEGIN SELECT RAISE(ABORT, 'refused'); END`)
	must.OK(t, err)
	code, _, complaints := ran(t, "copy", "--store", from, to)
	must.That(t, code == 1 && strings.Contains(complaints, "refused"), "%v %v", code, complaints)
	edges := graph(t, "1 2\n")
	done(t, "import", edges, "--store", from)
	_, err = target.Exec(`DROP TRIGGER refuses`)
	must.OK(t, err)
	done(t, "copy", "--store", from, to)
	_, out, complaints := ran(t, "settings", "get", "max-following", "--store", to)
	check.That(t, strings.HasPrefix(out, "max-following         7 "), "the setting is %s %s", out, complaints)
}
