package cluster

import (
	"path/filepath"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/sqlstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestCommandsNoteWhatTheyChange until they have reported it. If a command is killed, gateways report it.
func TestCommandsNoteWhatTheyChange(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	server := testenv.Redis(t)
	d := Config{Redis: server.URL(), RedisCache: true, Redundancy: Sync}
	redis, err := d.OpenRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	noted := func(what string, want int64) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			n, err := redis.Client().ZCard(t.Context(), "kith:"+store.UUID()+":intents:redis").Result()
			if err != nil {
				t.Fatal(err)
			}
			if n == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d are noted, want %d", what, n, want)
			}
		}
	}
	end := d.ChangingAll(t.Context(), store)
	noted("while everything may change", 1)
	end()
	noted("after that", 0)

	repairs, err := d.OpenRepairs(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	edge := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 5}
	repairs.Before(reconcile.KeysOf(storage.Forward, []storage.Pair{edge.Pair()}))
	noted("before a repair", 1)
	repairs.Repaired(t.Context(), []storage.Row{{Side: storage.Forward, Edge: edge}})
	noted("when it has been reported", 0)
	repairs.Close()

	d.Redundancy = Binlog // the log reports changes
	end = d.ChangingAll(t.Context(), store)
	defer end()
	noted("in the mode binlog", 0)
}
