package oracle

import (
	"context"
	"fmt"

	"kith/storage"
	"kith/storage/judge"
)

// ChangeEdges implements [storage.EdgeChanger]. The Inverse side is in the same database if the
// option [Together] says so.
func (s *Store) ChangeEdges(ctx context.Context, from storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(changes))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	defer s.write(ctx)()
	counts, counted := s.counts[from]
	if !counted {
		return refuse(results, fmt.Errorf("change edges of user %d: %w", from, storage.ErrUserUnknown))
	}
	pairs := make([]storage.Pair, len(changes))
	for i, change := range changes {
		pairs[i] = storage.Pair{From: from, To: change.To}
	}
	j := s.judge(pairs...)
	if o.Inverse {
		j.Inline = s.inline(from)
	}
	by := judge.Actor{User: from, Follows: counts.Following, MaxFollowing: o.MaxFollowing, MaxBlocks: o.MaxBlocks}
	for _, e := range s.tables[storage.Forward][from] {
		switch e.Type {
		case storage.Blocking:
			by.Blocks++
		case storage.Requested:
			by.Requests++
		}
	}
	for i, change := range changes {
		results[i] = j.Change(&by, change)
		if results[i].Value.Changed {
			s.activeOn(from, change.At)
		}
	}
	s.save(j)
	return results
}

// ChangeRequest implements [storage.RequestChanger].
func (s *Store) ChangeRequest(ctx context.Context, request storage.Pair, change storage.RequestChange, o storage.RequestOptions) (storage.ChangedRequest, error) {
	if err := ctx.Err(); err != nil {
		return storage.ChangedRequest{}, err
	}
	defer s.write(ctx)()
	counts, counted := s.counts[request.From]
	if !counted {
		return storage.ChangedRequest{}, fmt.Errorf("change the request of user %d: %w", request.From, storage.ErrUserUnknown)
	}
	act := judge.Act{Request: request, Change: change, Options: o, Follows: counts.Following,
		Pending: func(since storage.Micros) (n int, err error) {
			for _, e := range s.tables[storage.Requests][request.From] {
				if e.Type == storage.Pending && e.UpdateTime >= since {
					n++
				}
			}
			return n, nil
		}}
	j := s.judge(request)
	if o.Inverse {
		j.Inline = s.inline(request.From)
	}
	changed, err := j.Request(act)
	if err != nil {
		return storage.ChangedRequest{}, fmt.Errorf("change the request of user %d to %d: %w", request.From, request.To, err)
	}
	if active := act.Active(); changed.Changed && active != 0 {
		s.activeOn(active, change.At)
	}
	s.save(j)
	return changed, nil
}

// inline reports which users are in one database with a user.
func (s *Store) inline(user storage.UserID) func(storage.UserID) bool {
	return func(other storage.UserID) bool { return s.together(user, other) }
}

// judge makes a judge that knows all rows between the users of some pairs.
func (s *Store) judge(pairs ...storage.Pair) *judge.Judge {
	j := judge.New(s.requestTTL)
	j.Posts = make(map[storage.PostID]bool)
	for _, p := range pairs {
		for _, side := range storage.AllSides {
			for _, pair := range []storage.Pair{p, {From: p.From, To: p.To}, {From: p.To, To: p.From}} {
				if e, exists := s.edge(side, pair); exists && side.HasItem() == (pair.Post != 0) {
					j.Know(side, e)
				}
			}
		}
		if known := s.posts[p.PostID()]; known != nil {
			j.Posts[p.PostID()] = !known.deleted
		}
	}
	return j
}

// save writes what was judged: rows and what is stored beside them, the log, and counts.
func (s *Store) save(j *judge.Judge) {
	for _, side := range storage.AllSides {
		for _, edge := range j.Changed(side) {
			if old := s.row(side, edge.Pair()); side == storage.Forward && old.Type == storage.Following && s.firsts[edge.Pair()] == 0 {
				s.firsts[edge.Pair()] = old.UpdateTime
			}
			s.put(side, edge)
			s.change.AddRow(side, edge)
			s.log.add(side, edge)
			if side == storage.Requests {
				delete(s.messages, edge.Pair())
			}
			if side == storage.Relations {
				delete(s.details, edge.Pair())
				if d := j.Details[edge.Pair()]; edge.Type == storage.Related && d != (storage.Detail{}) {
					s.details[edge.Pair()] = d
				}
			}
		}
	}
	for request, message := range j.Messages {
		if message != "" && s.row(storage.Requests, request).Type == storage.Pending {
			s.messages[request] = message
		}
	}
	for _, pair := range j.EndedFollows() {
		delete(s.marks, pair)
	}
	diffs := make(judge.Diffs)
	j.AddTo(diffs)
	for user, d := range diffs {
		counts := s.counts[user]
		counts.Following += d.Following
		counts.Follower += d.Follower
		counts.Friend += d.Friend
		counts.Favorites += d.Favorites
		counts.Favorited += d.Favorited
		counts.Version++
		s.counts[user] = counts
		s.active[user] = max(s.active[user], d.Active)
		s.change.AddCounts(storage.UserChange{User: user, Counts: counts, Before: counts.Version - 1})
	}
	for of, d := range j.KindDiffs() {
		n := s.kinds[of]
		s.kinds[of] = storage.KindCount{Outgoing: n.Outgoing + d.Outgoing, Incoming: n.Incoming + d.Incoming}
	}
	for id, diff := range j.PostDiffs() {
		s.posts[id].Counts.Favorites += diff
		s.posts[id].Counts.Version++
	}
}

func (s *Store) put(side storage.Side, edge storage.Edge) {
	owner := side.Owner(edge.Pair())
	if s.tables[side][owner] == nil {
		s.tables[side][owner] = make(map[end]storage.Edge)
	}
	s.tables[side][owner][endOf(side, edge.Pair())] = edge
}
