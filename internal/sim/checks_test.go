package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"kith/cluster"
	"kith/graph/consistency"
	"kith/storage"
)

// wrote checks what follows from an answer to a write.
func (w *world) wrote(ctx context.Context, g *gateway, s step, a *attempt, rows []storage.Written, err error) {
	w.note("%s: %v", s, err)
	if err != nil || g.dead.Load() {
		return
	}
	a.mu.Lock()
	at := a.at
	a.mu.Unlock()
	var token consistency.Token
	w.mu.Lock()
	for _, r := range rows {
		token = append(token, consistency.Mark{Side: r.Side, Pair: r.Edge.Pair(), Version: r.Edge.UpdateTime})
		if w.lostAt[w.shards.ShardOf(r.Side.Owner(r.Edge.Pair()))].Before(a.began) { // else a restore has lost it before its answer
			w.acked = append(w.acked, r.Row)
		}
	}
	for k, i := range at {
		if k.user == s.user && slices.Contains(ownSide, k.what) {
			w.floors[floor{g, k}] = max(w.floors[floor{g, k}], i)
		}
	}
	other := w.gateways[(s.gateway+1)%len(w.gateways)]
	w.mu.Unlock()
	for _, what := range ownSide {
		w.read(ctx, g, what, s.user, nil)
	}
	if len(token) == 0 || !other.tokens.Wait(ctx, token) {
		return
	}
	for _, what := range ownSide {
		w.read(ctx, other, what, s.user, at)
	}
	w.read(ctx, other, counts, s.other, at)
	w.read(ctx, other, follower, s.other, at)
}

// read reads what there is of a user. The answer shows at least the versions that a token stands for.
func (w *world) read(ctx context.Context, g *gateway, what string, user storage.UserID, token map[key]int) {
	began := time.Now()
	w.mu.Lock()
	own := maps.Clone(w.floors)
	w.mu.Unlock()
	texts, err := g.look(ctx, what, user)
	if err != nil || g.dead.Load() {
		return
	}
	w.note("gateway %s: %v", g.name, texts)
	usual := w.bound(began)
	for k, text := range texts {
		bound := w.boundOf(k, began, usual)
		if w.history.isUnknown(k) || what == feed && (w.history.hidden(k.other, began.Add(-2*hides), time.Now()) || w.history.hidden(user, began.Add(-2*hides), time.Now())) {
			continue
		}
		least, isIn := token[k]
		switch i := w.history.find(k, text, began.Add(-bound), time.Now()); {
		case i < 0 && what == feed && text == there && w.history.fed(k, began.Add(-bound), time.Now()):
		case i < 0:
			w.fail(everybody, "gateway %s says that %v is %q, which has not been so for %s: %v", g.name, k, text, bound, w.history.all(k))
		case usual == anyTime: // until a restored shard has been readmitted, gateways may have what was before
		case isIn && i < least:
			w.fail(withToken, "gateway %s says that %v is %q, which it was before the write", g.name, k, text)
		case i < own[floor{g, k}]:
			w.fail(ownWrites, "gateway %s says that %v is %q, which it was before the write", g.name, k, text)
		}
	}
}

// forgets is after what time gateways have forgotten everything, if another one was killed in the minute before.
const forgets = 75 * time.Second

// anyTime is how old an answer may be while a shard is restored or copies are repaired.
const anyTime = time.Hour

// usualBound is how old an answer may be while nothing fails.
const usualBound = 100 * time.Millisecond

// cutOffBound is how old an answer may be while another gateway alone is cut off.
const cutOffBound = 5100 * time.Millisecond

// bound is how old an answer may be at a time.
func (w *world) bound(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	bound := usualBound
	if now.Before(w.repaired) {
		return anyTime
	}
	if now.Before(w.shown.Add(usualBound)) || w.history.isLogging(anyShard) {
		bound += mostLogged
	}
	if now.Before(w.away.Add(3100 * time.Millisecond)) {
		bound = 3100*time.Millisecond + bound
	}
	if now.Before(w.cutOff[1].Add(cutOffBound)) {
		bound = max(bound, cutOffBound)
	}
	if !w.cutOff[0].IsZero() && w.storeAway.After(w.cutOff[0]) && now.Before(w.storeAway.Add(cutOffBound)) { // nor could it say so there
		bound = max(bound, now.Sub(w.cutOff[0]))
	}
	for i, at := range w.killed {
		if w.storeAway.After(at) && now.Before(w.storeAway.Add(12*time.Second)) { // before, nobody notices
			bound = max(bound, now.Sub(at)+usualBound)
		}
		at = later(at, later(w.away, w.storeAway)) // before, nobody notices
		switch {
		case w.Redundancy == cluster.Binlog: // the log reports in its place
			if now.Before(at.Add(hides)) {
				bound = max(bound, hides)
			}
		case i > 0 && at.Sub(w.killed[i-1]) < time.Minute+12*time.Second && now.Before(at.Add(forgets)):
			bound = max(bound, forgets)
		case now.Before(at.Add(12 * time.Second)):
			bound = max(bound, 12*time.Second)
		}
	}
	return bound
}

// look reads what there is of a user on a gateway.
func (g *gateway) look(ctx context.Context, what string, user storage.UserID) (map[key]string, error) {
	if what != feed {
		return look(ctx, g.reads(ctx), what, user)
	}
	texts, ok := g.feedOf(ctx, user)
	if !ok {
		return nil, storage.ErrUnavailable
	}
	return texts, nil
}

// boundOf is how old an answer about something may be at a time, if that is bound for others.
func (w *world) boundOf(k key, now time.Time, bound time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, user := range []storage.UserID{k.user, k.other} {
		if now.Before(w.late[user].Add(30 * time.Second)) {
			bound = max(bound, 20*time.Second)
		}
	}
	// What is told of the other side has the lag of the mode: logs are not read while their database is away, and writes wait for moves.
	isAway := w.Redundancy == cluster.Binlog && now.Before(w.storeAway.Add(time.Second))
	if isLate := isAway || w.closed != nil || now.Before(w.opened.Add(time.Second)); isLate && (k.what == follower || k.what == counts) {
		bound = max(bound, time.Minute)
	}
	if k.what == feed { // posts of which no event comes are read every 5 s
		if bound > usualBound || now.Before(w.doubts[k.other].Add(6*time.Second)) {
			bound = max(bound, 6*time.Second)
		}
		if now.Before(w.storeAway.Add(6 * time.Second)) { // when they were to be read
			bound += 5 * time.Second
		}
		bound += 300 * time.Millisecond
	}
	return bound
}

// hides is after what time gateways show who is hidden.
const hides = 5 * time.Second

// checkHidden compares who is hidden on all gateways.
func (w *world) checkHidden() {
	w.mu.Lock()
	all, answers := append([]*gateway(nil), w.gateways...), later(w.storeAway, w.readmitted)
	w.mu.Unlock()
	for user := storage.UserID(1); user <= numberOfUsers; user++ {
		v := w.history.last(key{what: hidden, user: user})
		since := later(v.at, w.history.standing(user))
		for _, g := range all {
			if !g.dead.Load() && time.Since(later(since, later(g.started, answers))) > hides && fmt.Sprint(g.hidden.Has(user)) != v.text {
				w.fail(hiddenSoon, "gateway %s does not know that user %d is hidden: %s, since %s", g.name, user, v.text, v.at.Sub(w.began))
			}
		}
		out := w.history.last(key{what: tokens, user: user})
		for _, g := range all {
			if is := fmt.Sprint(g.hidden.Passwords.ChangedAt(user)); !g.dead.Load() && time.Since(later(out.at, later(g.started, answers))) > hides && is != out.text && !(out.restored && is > out.text) { // a token that has ended does not come back
				w.fail(tokensEnd, "gateway %s knows of tokens of user %d that end at %s, since %s it is %s", g.name, user, is, out.at.Sub(w.began), out.text)
			}
		}
	}
}

// quiet waits until nothing is under way, and compares all that there is.
func (w *world) quiet() {
	time.Sleep(2 * time.Minute)
	w.checkHidden()
	w.checkAll(false)
	w.checkWatchers()
	w.checkReader()
	w.repair()
	time.Sleep(2 * forgets)
	w.checkAll(true)
}

// checkAll compares all that there is. Unless all lost copies have been repaired, they may differ.
func (w *world) checkAll(repaired bool) {
	ctx := context.Background()
	for _, row := range w.acked {
		if is := storage.EdgeLookups[row.Side].Read(ctx, w.shards, row.Edge.Pair())[0]; is.Value.UpdateTime < row.Edge.UpdateTime {
			w.fail(nothingLost, "%v is %v", row, is.Value)
		}
	}
	for user := storage.UserID(1); user <= numberOfUsers; user++ {
		w.checkCopies(ctx, user, repaired)
		for _, what := range readable {
			if what == feed {
				continue
			}
			want, _ := look(ctx, w.shards, what, user)
			for _, g := range w.gateways {
				if is, err := g.look(ctx, what, user); err != nil || !maps.Equal(is, want) {
					w.fail(answersAgree, "gateway %s says %v (%v), and it is %v", g.name, is, err, want)
				}
			}
		}
		w.checkFeed(ctx, user)
	}
	for _, s := range w.sessions {
		of := storage.IdentityLookups.Read(ctx, w.shards, s.who)[0].Value
		named := storage.HandleLookups.Read(ctx, w.shards, s.handle)[0].Value
		is := storage.UserLookups.Read(ctx, w.shards, s.user)[0].Value
		if of != s.user || named != s.user || is.Handle != s.handle {
			w.fail(handlesAgree, "%v: the identity leads to %d, the handle to %d, and the user is %v", s, of, named, is)
		}
	}
}

// checkFeed compares a user's feed on all gateways, twice: between the two, an inbox may be built.
func (w *world) checkFeed(ctx context.Context, user storage.UserID) {
	w.history.mu.Lock()
	want := w.history.feedIn(ctx, user)
	w.history.mu.Unlock()
	maps.DeleteFunc(want, func(k key, _ string) bool { return w.history.last(key{what: hidden, user: k.other}).text == "true" })
	for range 2 {
		for _, g := range w.gateways {
			is, ok := g.feedOf(ctx, user)
			maps.DeleteFunc(is, func(k key, _ string) bool { _, known := want[k]; return !known })
			if ok && !maps.Equal(is, want) {
				w.fail(answersAgree, "gateway %s says %v, and it is %v", g.name, is, want)
			}
		}
		time.Sleep(2 * time.Second)
	}
}

func (w *world) checkCopies(ctx context.Context, user storage.UserID, repaired bool) {
	c, _ := storage.CountLookups.Get(ctx, w.shards, user)
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		edges, _ := storage.PageLookups[side].Get(ctx, w.shards, storage.PageQuery{Owner: user, Limit: 100})
		if c.Of(side) != int64(len(edges)) {
			w.fail(countsMatch, "%s of %d are %d, and their number is %d", side, user, len(edges), c.Of(side))
		}
		for _, e := range edges {
			if is := storage.EdgeLookups[side.Other()].Read(ctx, w.shards, e.Pair())[0]; is.Value != e && (repaired || !w.isLossy(e.Pair())) {
				w.fail(copiesAgree, "%v is %v on the other side", e, is.Value)
			}
		}
	}
}

// isLossy reports whether something has happened to an edge, in either direction, by which the mode may lose a copy.
func (w *world) isLossy(of storage.Pair) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	isLossy := w.shards.Shards() > 1 && w.Redundancy != cluster.Binlog
	return w.restored || isLossy && (w.lossy[of] || w.lossy[storage.Pair{From: of.To, To: of.From}])
}

// mayLose notes that an edge is being written by a gateway. Until settled is called, the gateway's end may lose its copy, and if
// something has gone wrong by then, later as well.
func (w *world) mayLose(g *gateway, s step) (settled func()) {
	began, pair := time.Now(), storage.Pair{From: s.user, To: s.other}
	if !slices.Contains([]string{follow, unfollow, kill, ask, accept}, s.what) {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	g.writing[pair]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if s.refuse == 0 && w.storeAway.Before(began) {
			g.writing[pair]--
		}
		w.wroteAt[pair] = time.Now()
		inStream := w.Redundancy == cluster.Stream && w.troubled.After(began.Add(-requestTime)) // which may not have taken it
		// A gateway ends at a commit, and is taken away a moment later: what it was writing may have ended meanwhile.
		w.lossy[pair] = w.lossy[pair] || s.doubt > 0 || inStream || g.dead.Load()
	}
}

// counted is a user's writes in a minute that began between two times.
type counted struct {
	from, to time.Time
	n        int // negative if that minute may have ended before the last of them
}

// count adds to a user's writes, and returns how many there were in their minute as far as that is known.
func (w *world) count(user storage.UserID, began time.Time, accepted int, died bool) int {
	const atOnce, unknown = 10 * time.Second, -1 << 20 // others may have begun the minute, or ended in it, who are not heard of yet
	w.mu.Lock()
	defer w.mu.Unlock()
	is, now := w.writes[user], time.Now()
	switch {
	case died, w.troubled.After(began.Add(-time.Minute)): // what was counted may be lost
		is = counted{began.Add(-time.Minute), now.Add(atOnce), unknown}
	case began.After(is.to.Add(time.Minute)):
		is = counted{began.Add(-atOnce), now.Add(atOnce), accepted}
	case now.After(is.from.Add(time.Minute)):
		is = counted{is.from, now.Add(atOnce), unknown}
	default:
		is.n += accepted
	}
	w.writes[user] = is
	return is.n
}
