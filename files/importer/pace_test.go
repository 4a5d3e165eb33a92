package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/storage"
)

// slowKeeper takes a while for each call that writes edges, and notes the calls.
type slowKeeper struct {
	*keeper
	calls, most, atOnce atomic.Int64
	together            atomic.Bool
}

const slowCall = 5 * time.Millisecond

func (k *slowKeeper) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	if k.atOnce.Add(1) > 1 {
		k.together.Store(true)
	}
	defer k.atOnce.Add(-1)
	k.calls.Add(1)
	k.most.Store(max(k.most.Load(), int64(len(edges))))
	time.Sleep(slowCall)
	return k.keeper.Apply(ctx, side, edges, rule)
}

// An import beside gateways writes a little at a time, and pauses between.
func TestAnImportRestsBetweenCalls(t *testing.T) {
	k := &slowKeeper{keeper: newKeeper()}
	const users, lines, load = 100, 6 * gentleEdges, 0.2
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "%d %d\n", i%users+1, i/users+1_000)
	}
	began := time.Now()
	mustRun(t, k, Config{Files: []string{file(t, "edges.csv", text.String())}, MaxLoad: load})
	took, calls := time.Since(began), k.calls.Load()
	least := time.Duration(float64(calls*int64(slowCall)) / load)
	check.That(t, took >= least, "%d calls of %s took %s together, less than %s", calls, slowCall, took, least)
	if calls < 12 || k.most.Load() > 2*gentleEdges || k.together.Load() {
		t.Errorf("%d calls, of up to %d edges, some at once: %t", calls, k.most.Load(), k.together.Load())
	}
}

// made ends a context at the first users that are made.
type made struct {
	*keeper
	cancel func()
}

func (m made) CreateUsers(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
	m.cancel()
	return m.keeper.CreateUsers(ctx, users, states...)
}

// An import that is interrupted pauses no more: with a small load, that would take longer than anybody waits.
func TestAPauseEndsWithTheImport(t *testing.T) {
	const text = "1 2\n1 3\n"
	for name, edges := range map[string]int64{file(t, "edges.csv", text): 0, "-": 2} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			report, err := Run(ctx, made{newKeeper(), cancel}, Config{Files: []string{name}, Stdin: strings.NewReader(text), MaxLoad: 1e-12})
			check.That(t, (err == nil || errors.Is(err, ErrInterrupted)) && report.Edges == edges, "%s: %+v %v", name, report, err)
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("it pauses")
		}
	}
}
