package resolvers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kith/internal/apitest"
	"kith/storage"
)

// A follow of a user who cannot be looked up says why, and the others are made. A gateway that stands still for long finds the time of its
// requests over when it goes on.
func TestFollowsThatWereNotMadeSayWhy(t *testing.T) {
	shards := storage.NewShardMap(2)
	viewer, near, far := storage.UserID(1), storage.UserID(2), storage.UserID(2)
	for shards.Of(near) != shards.Of(viewer) {
		near++
	}
	for shards.Of(far) == shards.Of(viewer) {
		far++
	}
	store := storeOf(t, int(max(near, far)))
	for code, err := range map[string]error{
		"TIMEOUT":               fmt.Errorf("read: %w", context.DeadlineExceeded),
		"UNAVAILABLE":           fmt.Errorf("read: %w", storage.ErrUnavailable),
		"INTERNAL_SERVER_ERROR": errors.New("another"),
	} {
		lost := &faulty{store, shards, func(_ context.Context, _ string, shard int) error {
			if shard == shards.Of(far) {
				return err
			}
			return nil
		}}
		answer := apitest.New(t, lost, apitest.Options{}).As(viewer).Ask(
			`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { error { code argument } } } }`, apitest.Vars{"ids": []storage.UserID{far, near}})
		answer.Is(fmt.Sprintf(`{"followMany": {"outcomes": [{"error": {"code": "%s", "argument": null}}, {"error": null}]}}`, code))
	}
}
