package sqlstore

import (
	"context"

	"kith/storage"
	"kith/storage/judge"
)

// Served by idx_friend_request_list.
const sqlPendingRequests = `
SELECT COUNT(*)
FROM friend_request
WHERE from_user_id = ? AND type = 1 AND update_time >= ?`

// ChangeRequest implements [storage.RequestChanger].
func (s *Store) ChangeRequest(ctx context.Context, request storage.Pair, change storage.RequestChange, o storage.RequestOptions) (storage.ChangedRequest, error) {
	var changed storage.ChangedRequest
	err := s.transact(ctx, "request", s.ownerOf(request.From), func(w *writer) (err error) {
		c := newRequestChange(w, request, change, o)
		changed, err = c.run()
		return err
	})
	if err != nil {
		return storage.ChangedRequest{}, err
	}
	return changed, nil
}

// requestChange is one try of a ChangeRequest.
type requestChange struct {
	change
	act judge.Act
}

func newRequestChange(w *writer, request storage.Pair, act storage.RequestChange, o storage.RequestOptions) *requestChange {
	c := &requestChange{change: change{writer: w, user: request.From}}
	c.act = judge.Act{Request: request, Change: act, Options: o, Pending: c.countPending}
	return c
}

// run is the transaction, in the lock order of [Store.Apply].
func (c *requestChange) run() (storage.ChangedRequest, error) {
	request, inverse := c.act.Request, c.act.Options.Inverse
	c.newJudge(inverse)
	counts, err := c.lockPair(request.To, inverse && c.isLocal(request.To), allRowsOfPair)
	if err != nil {
		return storage.ChangedRequest{}, err
	}
	c.act.Follows = counts.Following
	for {
		changed, err := c.Request(c.act)
		if err != nil {
			return storage.ChangedRequest{}, err
		}
		again, err := c.lockMissing()
		if err != nil {
			return storage.ChangedRequest{}, err
		}
		if !again {
			return changed, c.save(c.act.Active(), c.act.Change.At)
		}
		c.newJudge(inverse)
		keys := []storage.Pair{request, {From: request.To, To: request.From}}
		if err := c.look(c.Judge, keys, storage.Sides[:]...); err != nil {
			return storage.ChangedRequest{}, err
		}
	}
}

func (c *requestChange) countPending(since storage.Micros) (n int, err error) {
	_, err = c.readOne(sqlPendingRequests, []any{int64(c.user), int64(since)}, &n)
	return n, err
}
