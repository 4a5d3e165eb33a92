package social_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"kith/graph/declared"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/social"
	"kith/storage"
)

// taking is a redundancy mode that takes rows over as long as the context allows, as the mode stream does.
type taking struct{ rows []storage.Written }

func (*taking) Inline() bool { return false }

func (m *taking) Propagate(ctx context.Context, written []storage.Written) error {
	if ctx.Err() == nil {
		m.rows = append(m.rows, written...)
	}
	return ctx.Err()
}

// leaving is a store whose first change ends the context: its client disconnects during the commit.
func leaving(t *testing.T, engine *oracle.Store) (context.Context, *double.Store) {
	ctx, disconnect := context.WithCancel(t.Context())
	store := double.Of(engine)
	store.Instead.ChangeEdges = func(ctx context.Context, side storage.Side, user storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
		defer disconnect()
		if ctx.Err() != nil {
			return slices.Repeat([]storage.Result[storage.Changed]{{Err: ctx.Err()}}, len(changes))
		}
		return engine.ChangeEdges(ctx, side, user, changes, o)
	}
	return ctx, store
}

// Rows that have been committed are handed over also if the client has disconnected meanwhile, or if the other shard has not answered
// in time: in the mode stream nothing else would write their other sides.
func TestCommittedRowsAreHandedOver(t *testing.T) {
	post := storage.PostID{Author: 2, Number: 1}
	for _, act := range []struct {
		name string
		do   func(context.Context, *social.Relations, storage.Answerer) error
	}{
		{"follow", func(ctx context.Context, r *social.Relations, people storage.Answerer) error {
			_, _, err := r.Follow(ctx, people, 1, []storage.UserID{2})
			return err
		}},
		{"block", func(ctx context.Context, r *social.Relations, people storage.Answerer) error {
			_, err := r.Block(ctx, people, 1, 2)
			return err
		}},
		{"favorite", func(ctx context.Context, r *social.Relations, people storage.Answerer) error {
			_, _, err := r.Favorite(ctx, people, 1, post)
			return err
		}},
		{"relate", func(ctx context.Context, r *social.Relations, people storage.Answerer) error {
			changed, _ := r.Relate(ctx, people, 1, declared.Mutes, []storage.UserID{2}, storage.DetailChange{})
			return changed[0].Err
		}},
	} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the other shard is silent: %t", act.name, silent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine := oracle.New()
					for id := range storage.UserID(2) {
						must.OK(t, engine.CreateUsers(t.Context(), []storage.User{{ID: id + 1, Handle: fmt.Sprintf("user_%d", id), Name: "A"}})[0].Err)
					}
					_, _, err := engine.Publish(t.Context(), storage.PostRow{PostID: post, Key: "a", Text: "a", At: 1})
					must.OK(t, err)
					ctx, store := leaving(t, engine)
					mode := &taking{}
					if silent {
						store.Instead.Apply = func(ctx context.Context, _ storage.Side, edges []storage.Edge, _ storage.Rule) []storage.Result[storage.Changed] {
							<-ctx.Done()
							return slices.Repeat([]storage.Result[storage.Changed]{{Err: ctx.Err()}}, len(edges))
						}
					}
					must.OK(t, act.do(ctx, social.NewRelations(social.Relations{Store: store, Redundancy: mode}), engine))
					check.Equal(t, "rows that are handed over", len(mode.rows), 1)
				})
			})
		}
	}
}

// Who waits to follow a user is told of being accepted, also if the user has disconnected meanwhile: nothing would tell it later.
func TestAnAcceptanceIsToldOf(t *testing.T) {
	engine := oracle.New()
	for id := range storage.UserID(2) {
		must.OK(t, engine.CreateUsers(t.Context(), []storage.User{{ID: id + 1, Handle: fmt.Sprintf("user_%d", id), Name: "A"}})[0].Err)
	}
	must.OK(t, engine.ChangeEdges(t.Context(), storage.Forward, 1, []storage.EdgeChange{{To: 2, Type: storage.Requested, At: 1}}, storage.ChangeOptions{})[0].Err)
	ctx, store := leaving(t, engine)
	must.OK(t, social.NewRelations(social.Relations{Store: store, Redundancy: &taking{}}).Accept(ctx, storage.Forward, 2, 1)[0].Err)
	told := storage.EdgeLookups[storage.Relations].Read(t.Context(), engine, declared.Acceptances.Pair(2, 1))[0]
	check.Equal(t, "what is told of", told.Value.Type, storage.Related)
}
