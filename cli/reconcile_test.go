package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/sqlstore"
)

// reconciling runs `kith reconcile` on a store on SQLite.
func reconciling(ctx context.Context, store *sqlstore.Store, arguments ...string) (string, error) {
	var program struct {
		Settings
		Reconcile ReconcileCmd `cmd:""`
	}
	var out bytes.Buffer
	parser, err := kong.New(&program, Vars, bounded, kong.Writers(&out, io.Discard),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(store))
	if err != nil {
		return "", err
	}
	k, err := parser.Parse(append([]string{"reconcile"}, arguments...))
	if err != nil {
		return "", err
	}
	k.Bind(&program.Settings)
	err = k.Run()
	return out.String(), err
}

// halved makes a store in which one side of an edge is lost.
func halved(t *testing.T) *sqlstore.Store {
	t.Helper()
	store := emptyStore(t)
	lose(t, store, 1)
	return store
}

func emptyStore(t *testing.T) *sqlstore.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db"), StatementTimeout: 30 * time.Second})
}

func lose(t *testing.T, store *sqlstore.Store, from storage.UserID) {
	t.Helper()
	edge := storage.Edge{From: from, To: 2, Type: storage.Following, UpdateTime: 5}
	must.All(t, store.Apply(t.Context(), storage.Forward, []storage.Edge{edge}, storage.IfNewer))
}

func TestReconcileFullCommand(t *testing.T) {
	store := halved(t)
	out, err := reconciling(t.Context(), store, "full", "--window=1ms")
	check.That(t, err != nil && strings.Contains(err.Error(), "disagreements found: 1; --repair"), "error %v", err)
	check.Has(t, "what is printed", out, "compared 1 rows of following with 0 of follower in ", "and 0 rows of relation with 0 of relation_inbox\n", "missing      1 → 2: following type 1 at 5, follower has no row\n", "  missing                1           0           1\n")
	out, err = reconciling(t.Context(), store, "full", "--window=1ms", "--output=json", "--repair", "--max-load=1")
	check.That(t, err == nil, "%v", err)
	var report struct {
		Repair          bool
		Found, Repaired map[reconcile.Kind]int
		Left            int
		Findings        []struct {
			Kind, From, To string
			Following      *struct{ Type, UpdateTime int64 }
			Follower       *struct{ Type, UpdateTime int64 }
		}
	}
	err = json.Unmarshal([]byte(out), &report)
	must.That(t, err == nil, "%v %v", err, out)
	if !report.Repair || report.Found["missing"] != 1 || report.Repaired["missing"] != 1 || report.Left != 0 || len(report.Found) != len(reconcile.Kinds()) {
		t.Errorf("%+v", report)
	}
	f := report.Findings[0]
	check.That(t, f.Kind == "missing" && f.From == "1" && f.Following.UpdateTime == 5 && f.Follower == nil, "%+v", f)
	_, err = reconciling(t.Context(), store, "full", "--window=1ms")
	check.That(t, err == nil, "%v", err)
}

// A repair that is refused says what lets it go on: the same command would be refused again.
func TestARefusedRepairSaysHowToGoOn(t *testing.T) {
	store := emptyStore(t)
	left := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 5}
	must.All(t, store.Apply(t.Context(), storage.Inverse, []storage.Edge{left}, storage.IfNewer))
	_, err := reconciling(t.Context(), store, "full", "--window=1ms", "--repair")
	check.That(t, err != nil && strings.HasSuffix(err.Error(), "with a higher --max-ended, the same command goes on from there"), "error %v", err)
	_, err = reconciling(t.Context(), store, "full", "--window=1ms", "--repair", "--max-ended=1")
	check.That(t, err == nil, "%v", err)
}

func TestReconcileKnowsRequests(t *testing.T) {
	store := halved(t)
	_, err := reconciling(t.Context(), store, "full", "--window=1ms", "--repair")
	must.OK(t, err)
	ask := storage.Edge{From: 1, To: 2, Type: storage.Pending, UpdateTime: 5}
	must.All(t, store.Apply(t.Context(), storage.Requests, []storage.Edge{ask}, storage.IfNewer))
	const finding = "missing      1 → 2: friend_request type 1 at 5, friend_request_inbox has no row\n"
	for mode, more := range map[string]string{"full": "and 1 rows of friend_request with 0 of friend_request_inbox\n", "incremental": " rows in the logs, looked up 2 edges\n"} {
		out, err := reconciling(t.Context(), store, mode, "--window=1ms")
		check.That(t, err != nil && strings.Contains(out, finding) && strings.Contains(out, more), "%s: %v\n%s", mode, err, out)
	}
	out, err := reconciling(t.Context(), store, "full", "--window=1ms", "--output=json")
	if err == nil || !strings.Contains(out, `"pair": "friend_request"`) || !strings.Contains(out, `"friendRequestRows": 1`) || !strings.Contains(out, `"friendRequestInboxRows": 0`) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, arguments := range [][]string{{"incremental", "--window=1ms", "--repair"}, {"full", "--window=1ms"}} {
		out, err := reconciling(t.Context(), store, arguments...)
		check.That(t, err == nil, "%v: %v\n%s", arguments, err, out)
	}
	check.Equal(t, "the request", storage.EdgeLookups[storage.Inbox].Read(t.Context(), store, ask.Pair())[0].Value, ask)
}

func TestReconcileIncrementalGoesOnFromAFullScan(t *testing.T) {
	store := halved(t)
	_, err := reconciling(t.Context(), store, "full", "--window=1ms", "--repair")
	must.OK(t, err)
	lose(t, store, 7)
	out, err := reconciling(t.Context(), store, "incremental", "--window=1ms", "--output=json")
	check.That(t, err != nil && strings.Contains(out, `"from": "7"`), "%v\n%s", err, out)
	out, err = reconciling(t.Context(), store, "incremental", "--window=1ms", "--repair")
	check.That(t, err == nil, "%v\n%s", err, out)
	out, err = reconciling(t.Context(), store, "full", "--window=1ms")
	check.That(t, err == nil, "%v\n%s", err, out)
}

// A run that fails, as while a shard is away, has not looked: what the one before it has left is still told.
func TestAFailedRunForgetsNoFindings(t *testing.T) {
	store := halved(t)
	_, err := reconciling(t.Context(), store, "incremental", "--window=1ms")
	must.OK(t, err)
	lose(t, store, 7)
	ended, stop := context.WithCancel(t.Context())
	stop()
	for _, ctx := range []context.Context{t.Context(), ended} {
		out, err := reconciling(ctx, store, "incremental", "--window=1ms")
		must.That(t, err != nil, "%v", out)
		list, err := reconcile.Statuses(t.Context(), store)
		check.That(t, err == nil && len(list) == 1 && list[0].Found[reconcile.Missing] == 1, "%+v, %v", list, err)
	}
}

// Without a checkpoint, a run sees nothing that was written before. Its report must say so,
// otherwise a reader takes the run for one that found nothing.
func TestAnIncrementalRunReportsThatItHasOnlyBegun(t *testing.T) {
	const begun = "relation_log of shard 0"
	out, err := reconciling(t.Context(), halved(t), "incremental", "--window=1ms")
	if err != nil || !strings.Contains(out, begun+": there was no checkpoint; it is looked at from now on, what was before is for kith reconcile full\n") {
		t.Errorf("%v\n%s", err, out)
	}
	store := halved(t)
	for _, want := range []string{`"begun": [
    "` + begun + `"
  ]`, `"begun": []`} {
		out, err := reconciling(t.Context(), store, "incremental", "--window=1ms", "--output=json")
		check.That(t, err == nil && strings.Contains(out, want), "%v\n%s without %s", err, out, want)
	}
	out, err = reconciling(t.Context(), store, "incremental", "--window=1ms")
	check.That(t, err == nil && !strings.Contains(out, "checkpoint"), "%v\n%s", err, out)
}

func TestReconcileRealtimeCommand(t *testing.T) {
	store := halved(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := reconciling(ctx, store, "realtime", "--window=50ms", "--admin-addr=127.0.0.1:0")
		ended <- err
	}()
	deadline := time.Now().Add(30 * time.Second)
	for from := storage.UserID(10); ; from++ { // it does not see what is written before it watches
		lose(t, store, from)
		time.Sleep(100 * time.Millisecond)
		if storage.EdgeLookups[storage.Inverse].Read(t.Context(), store, storage.Pair{From: from, To: 2})[0].Found {
			break
		}
		must.That(t, !time.Now().After(deadline), "nothing is repaired")
	}
	stop()
	err := <-ended
	check.That(t, err == nil, "%v", err)
}

func TestReconcileFlagsAreChecked(t *testing.T) {
	for _, arguments := range [][]string{
		{"full", "--max-load=0"}, {"full", "--max-load=1.5"}, {"full", "--window=0s"}, {"incremental", "--list=0"}, {"realtime", "--max-pending=0"},
	} {
		_, err := reconciling(t.Context(), nil, arguments...)
		check.Says(t, arguments, err, "it must be")
	}
}

func TestScanProgress(t *testing.T) {
	step := reconcile.Progress{Resumed: true, Doing: "comparing rows", Done: 50, Total: 200, Rows: 1234, Found: 3}
	var out bytes.Buffer
	plain := &progress{name: "reconcile", out: &out, every: time.Hour, began: time.Now().Add(-4 * time.Second)}
	plain.comparing(step)
	plain.comparing(step) // it is too early for a line
	plain.every = 0
	plain.comparing(step)
	plain.done()
	want := "reconcile: going on after 1,234 rows\nreconcile:  25 %, comparing rows, 1,234 rows, 3 found, 12s left\n"
	check.That(t, strings.HasPrefix(out.String(), want[:37]) && strings.HasSuffix(out.String(), want[37:]), "%q, want %q", out.String(), want)
	out.Reset()
	bar := &progress{name: "reconcile", out: &out, terminal: true, began: time.Now().Add(-4 * time.Second)}
	bar.done() // a scan may fail before it begins
	bar.comparing(step)
	bar.done()
	check.That(t, strings.Contains(out.String(), "25%") && strings.Contains(out.String(), "comparing rows, 1,234 rows, 3 found, 12s left"), "%q", out.String())
}

// An interrupted scan may have repaired something: gateways forget what they know, as at the end.
func TestAnInterruptedScanIsTold(t *testing.T) {
	store, redisServer := halved(t), testenv.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: redisServer.Addr()})
	t.Cleanup(func() { client.Close() })
	told := client.PSubscribe(t.Context(), "*")
	_, err := told.Receive(t.Context())
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = reconciling(ctx, store, "full", "--repair", "--redis", "redis://"+redisServer.Addr())
	must.That(t, errors.Is(err, context.Canceled), "%v", err)
	waiting, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = told.ReceiveMessage(waiting)
	check.Is(t, "nobody is told", err, nil)
}
