package social_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"kith/internal/testenv"
	"kith/social"
	"kith/storage"
	"kith/storage/intents"
	"kith/storage/notify"
	"kith/storage/storagetest/oracle"
)

// taking is a redundancy mode that accepts rows, or fails to.
type taking struct{ err error }

func (taking) Inline() bool                                         { return true }
func (t taking) Propagate(context.Context, []storage.Written) error { return t.err }

// A write stays noted until its rows have been propagated to their other side. Only then, and only
// after its events have been sent, are the notes of a change removed.
func TestWritesAreNotedUntilTheyAreWhole(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	log := intents.Open(intents.Config{Redis: client, Key: "kith:test:whole", Sweep: func(context.Context, []storage.UserID, func()) {}})
	t.Cleanup(log.Close)
	errLost := errors.New("the rows are lost")
	for name, do := range map[string]func(context.Context, *social.Relations, social.People) (stale bool, err error){
		"follow": func(ctx context.Context, r *social.Relations, people social.People) (bool, error) {
			_, stale, err := r.Follow(ctx, people, 1, []storage.UserID{2})
			return stale, err
		},
		"block": func(ctx context.Context, r *social.Relations, people social.People) (bool, error) {
			o, err := r.Block(ctx, people, 1, 2)
			return o.Stale, err
		},
		"ask": func(ctx context.Context, r *social.Relations, people social.People) (bool, error) {
			o, err := r.Ask(ctx, people, 1, 2, "")
			return o.Stale, err
		},
		"end all": func(ctx context.Context, r *social.Relations, _ social.People) (bool, error) {
			err := r.EndAll(ctx, 3)
			return errors.Is(err, storage.ErrUnavailable), nil
		},
	} {
		for _, lost := range []error{nil, errLost} {
			store := oracle.New()
			newWorld(t, store, 1, true, func() bool { return false }, 0)
			for _, change := range []storage.UserID{1, 2} {
				store.ChangeEdges(t.Context(), 3, []storage.EdgeChange{{To: change, Type: storage.Following, At: 1}}, storage.ChangeOptions{Inverse: true})
			}
			sent := 0
			noting := notify.Watch(store, func(context.Context, notify.Write) {}).Noting(log, func(then func()) {
				sent++
				then()
			})
			relations := social.NewRelations(social.RelationsConfig{Store: noting, Redundancy: taking{lost}})
			ctx, cancel := context.WithCancel(t.Context())
			stale, err := do(ctx, relations, store)
			cancel()
			if err != nil || stale != (lost != nil) || (sent > 0) != (lost == nil) {
				t.Errorf("%s, and the rows are propagated: %v; stale %t, its notes were taken back %d times, %v", name, lost, stale, sent, err)
			}
		}
	}
}
