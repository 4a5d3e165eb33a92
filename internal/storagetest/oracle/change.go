package oracle

import (
	"context"
	"fmt"
	"maps"

	"kith/storage"
	"kith/storage/judge"
)

// ChangeEdges implements [storage.Store]. The other side is in the same database if the
// option [Together] says so.
func (s *Store) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(changes))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	defer s.write(ctx)()
	if len(changes) == 0 {
		return results
	}
	by, err := s.actor(side, user, changes, o)
	if err != nil {
		return refuse(results, fmt.Errorf("change edges of user %d: %w", user, err))
	}
	pairs := storage.Each(changes, func(ch storage.EdgeChange) storage.Pair {
		return storage.Pair{From: user, To: ch.To, Item: ch.Item}
	})
	j := s.judge(pairs...)
	j.Details = maps.Clone(s.details)
	if o.Inverse {
		j.Inline = func(other storage.UserID) bool { return s.together(user, other) }
	}
	for i, change := range changes {
		results[i] = j.Change(side, by, change, o)
	}
	s.save(j)
	return results
}

// actor is a user who changes edges.
func (s *Store) actor(side storage.Side, user storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) (*judge.Actor, error) {
	counts, counted := s.counts[user]
	if _, exists := s.users[user]; !counted || side.HasItem() && !exists {
		return nil, storage.ErrUserUnknown
	}
	by := &judge.Actor{User: user, Follows: counts.Following, Items: make(map[int64]int64)}
	for _, e := range s.tables[storage.Forward][user] {
		switch e.Type {
		case storage.Blocking:
			by.Blocks++
		case storage.Requested:
			by.Waits++
		}
	}
	for _, e := range s.tables[storage.Requests][user] {
		if e.Type == storage.Pending && e.UpdateTime >= o.ValidFrom(changes[0].At) {
			by.Asks++
		}
	}
	for of, n := range s.kinds {
		if of.Owner == user {
			by.Items[of.Kind] = n.Outgoing
		}
	}
	for _, ch := range changes {
		if id, is := (storage.OwnerKind{Owner: user, Kind: ch.Item}).List(); side == storage.Relations && is && s.lists[id] == (storage.UserList{}) {
			by.NoLists = append(by.NoLists, ch.Item)
		}
	}
	if !side.HasItem() {
		return by, nil
	}
	return by, judge.MayPublish(user, s.states[user].State)
}

// judge makes a judge that knows all rows between the users of some pairs.
func (s *Store) judge(pairs ...storage.Pair) *judge.Judge {
	j := judge.New(s.requestTTL)
	j.Posts = make(map[storage.PostID]bool)
	for _, p := range pairs {
		for _, side := range storage.AllSides {
			for _, pair := range []storage.Pair{p, {From: p.From, To: p.To}, {From: p.To, To: p.From}} {
				if e, exists := s.edge(side, pair); exists && side.HasItem() == (pair.Item != 0) {
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
			s.addToLog(side, edge)
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
