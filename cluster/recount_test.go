package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestOtherGatewaysReadNothingAgain: what one gateway writes reaches the other one with its counts, versions and values, so that it
// reads neither users nor lists again that it keeps in memory.
func TestOtherGatewaysReadNothingAgain(t *testing.T) {
	for how, open := range map[string]func(t *testing.T) (Config, string){
		"Redis": func(t *testing.T) (Config, string) {
			return Config{Redis: testenv.Redis(t).URL(), Redundancy: Sync}, "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
		},
		"binlogs": func(t *testing.T) (Config, string) {
			testenv.NeedsBinlog(t)
			return Config{Redundancy: Sync}, "mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d, location := open(t)
			var read atomic.Int64
			writing := openFeedGatewayOf(t, d, sqlstore.Config{Location: location}, 0)
			other := openFeedGatewayOf(t, d, sqlstore.Config{Location: location, OnStatement: func(_ context.Context, s sqlstore.Statement) {
				if s.Lookup == "profiles" || strings.HasPrefix(s.Lookup, "snapshots") {
					read.Add(1)
				}
			}}, 0)
			for _, c := range []*Caches{writing.caches, other.caches} {
				for !c.local.IsOn() {
					time.Sleep(time.Millisecond)
				}
			}
			w, ctx, at := writing.caches.store, t.Context(), storage.Micros(10)
			made := w.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "one", Name: "One"}, {ID: 2, Handle: "two", Name: "Two"}})
			must.That(t, made[0].Err == nil && made[1].Err == nil, "%v", made)
			sees := func(from storage.Bundler) (all []any) {
				all = append(all, storage.ProfileLookups.Read(ctx, from, 1, 2))
				for i, side := range []storage.Side{storage.Forward, storage.Inverse} {
					all = append(all, storage.PageLookups[side].Read(ctx, from, storage.PageQuery{Owner: storage.UserID(i + 1), Limit: 10}))
				}
				return all
			}
			same := func(what string) {
				t.Helper()
				var got, want []any
				for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
					if got, want = sees(other.caches.Reader()), sees(w); fmt.Sprint(got) == fmt.Sprint(want) {
						return
					}
					must.That(t, !time.Now().After(end), "%s: the other gateway sees\n%+v, the store has\n%+v", what, got, want)
				}
			}
			follow := func(kind storage.EdgeType) error {
				at++
				change := storage.EdgeChange{To: 2, Type: kind, At: at}
				r := w.ChangeEdges(ctx, storage.Forward, 1, []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: true})[0]
				if r.Err == nil && d.Redis != "" { // as the mode does
					writing.caches.bus.Publish(ctx, []storage.Row{{Side: storage.Forward, Edge: r.Value.Row}})
				}
				return r.Err
			}
			same("at first")
			remark, name := "r", "Another"
			for round := range 3 {
				for _, step := range []struct {
					what string
					do   func() error
				}{
					{"a follow", func() error { return follow(storage.Following) }},
					{"a mark", func() error {
						remark += "r"
						_, _, err := w.SetMark(ctx, storage.Pair{From: 1, To: 2}, storage.MarkChange{Remark: &remark})
						return err
					}},
					{"a post", func() error {
						at++
						_, _, err := w.Publish(ctx, storage.PostRow{PostID: storage.PostID{Author: 1, Number: int64(at)}, Key: remark, Text: "t", At: at})
						return err
					}},
					{"another name", func() error {
						if how == "binlogs" { // the log does not have the whole user at hand
							return nil
						}
						at++
						name += "r"
						_, _, err := w.UpdateProfile(ctx, 1, storage.ProfileChange{Name: &name}, at)
						return err
					}},
					{"an end", func() error { return follow(storage.None) }},
				} {
					before := read.Load()
					err := step.do()
					must.That(t, err == nil, "%s: %v", step.what, err)
					same(step.what)
					if n := read.Load() - before; n > 0 && round > 0 { // in the first one, it may still hear that the users were made
						t.Errorf("%s: %d statements read users or lists again", step.what, n)
					}
				}
			}
		})
	}
}
