package sim

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"kith/graph/declared"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// key is something that can be read of a user; of a list, the edge to or from another.
type key struct {
	what        string
	user, other storage.UserID
	post        int64 // of the other; of a relation, which row
}

const (
	counts    = "counts"
	profile   = "profile"
	following = "following"
	follower  = "follower"
	mutes     = "mutes"
	hidden    = "hidden"
	tokens    = "tokens"
	relation  = "relation"
	feed      = "feed"
	activity  = "activity"
	requested = "requested" // to be friends, by another

	there = "there" // said of a post in a feed
)

// readable are the keys that clients read.
var readable = []string{counts, profile, following, follower, mutes, feed}

// ownSide is what a user's own writes change on its side.
var ownSide = []string{counts, profile, following, mutes}

// look reads what there is of a user, as texts. A list has a text for each other user: its edges are as old as they are, one by one.
func look(ctx context.Context, from storage.Answerer, what string, user storage.UserID) (map[key]string, error) {
	one := func(text string, err error) (map[key]string, error) {
		return map[key]string{{what: what, user: user}: text}, err
	}
	switch what {
	case counts:
		c, err := storage.CountLookups.Get(ctx, from, user)
		return one(fmt.Sprint(c), err)
	case profile:
		u, err := storage.UserLookups.Get(ctx, from, user)
		return one(u.Name, err)
	case hidden:
		s, err := storage.StateLookups.Get(ctx, from, user)
		return one(fmt.Sprint(s.State != storage.Active || s.Until != 0), err)
	case tokens:
		p, err := storage.PasswordLookups.Get(ctx, from, user)
		return one(fmt.Sprint(p.ChangedAt), err)
	case relation:
		return relations(ctx, from, user), nil
	case requested:
		texts := map[key]string{}
		for other := storage.UserID(1); other <= numberOfUsers; other++ {
			row, text := storage.EdgeLookups[storage.Inbox].Read(ctx, from, storage.Pair{From: other, To: user})[0], ""
			if row.Value.Type != storage.None {
				text = since(row.Value.UpdateTime)
			}
			texts[key{what: what, user: user, other: other}] = text
		}
		return texts, nil
	}
	side, query := storage.Forward, storage.PageQuery{Owner: user, Limit: 100}
	switch what {
	case follower:
		side = storage.Inverse
	case mutes:
		side, query.Item = storage.Relations, declared.Mutes.Number
	}
	edges, err := storage.PageLookups[side].Get(ctx, from, query)
	texts := map[key]string{}
	for other := range storage.UserID(numberOfUsers) {
		texts[key{what: what, user: user, other: other + 1}] = ""
	}
	for _, e := range edges {
		text := since(e.UpdateTime)
		if side == storage.Relations {
			d := storage.DetailLookups.Read(ctx, from, e.Pair())[0]
			text, err = fmt.Sprint("until ", d.Value.EndsAt), cmp.Or(err, d.Err)
			if !d.Found { // it has ended between the two look-ups: this says nothing
				delete(texts, key{what: what, user: user, other: e.To})
				continue
			}
		}
		texts[key{what: what, user: user, other: side.Peer(e.Pair())}] = text
	}
	return texts, err
}

// relations are what there is between a user and all others, as relationshipChanged says it: whether the user follows the other, is
// followed by it, and has muted it. These are rows that are read one by one, so a message may be between the changes of two.
func relations(ctx context.Context, from storage.Answerer, user storage.UserID) map[key]string {
	texts := map[key]string{}
	for other := storage.UserID(1); other <= numberOfUsers; other++ {
		if other == user {
			continue
		}
		to, back := storage.Pair{From: user, To: other}, storage.Pair{From: other, To: user}
		for row, is := range [...]bool{
			storage.EdgeLookups[storage.Forward].Read(ctx, from, to)[0].Value.Type == storage.Following,
			storage.EdgeLookups[storage.Inverse].Read(ctx, from, back)[0].Value.Type == storage.Following,
			storage.EdgeLookups[storage.Relations].Read(ctx, from, declared.Mutes.Pair(user, other))[0].Value.Type == storage.Related,
		} {
			texts[key{relation, user, other, int64(row)}] = fmt.Sprint(is)
		}
	}
	return texts
}

// feedIn is which posts are in a user's home feed, whoever is hidden.
func (h *history) feedIn(ctx context.Context, user storage.UserID) map[key]string {
	texts := map[key]string{}
	of := relations(ctx, h.shards, user)
	for post := range h.posts {
		follows, mutes := of[key{relation, user, post.Author, 0}], of[key{relation, user, post.Author, 2}]
		r, text := storage.PostLookups.Read(ctx, h.shards, post)[0], ""
		if r.Value.CreatedAt.Time().After(time.Now().Add(time.Minute)) {
			continue // it comes when its time has come
		}
		if r.Found && follows == "true" && mutes == "false" {
			text = there
		}
		texts[key{feed, user, post.Author, post.Number}] = text
	}
	return texts
}

// restored records what a restore has changed.
func (h *history) restored() {
	var all storage.Change
	for user := range storage.UserID(numberOfUsers) {
		all.AddStanding(user + 1)
	}
	h.restoring = true
	h.add(all, nil)
	h.restoring = false
}

// version is what a key was from a time on.
type version struct {
	at       time.Time
	text     string
	restored bool // from a backup: that is no news
}

// history is all that could ever be read.
type history struct {
	shards *oracle.Store

	mu        sync.Mutex
	versions  map[key][]version
	posts     map[storage.PostID]time.Time // when they were published
	logged    map[int]logged               // by shard
	stood     map[storage.UserID]time.Time // when a state last changed, or a suspension: somebody may be hidden for another reason than before
	restoring bool
}

// add records what a transaction has changed.
func (h *history) add(c storage.Change, a *attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.logged {
		l.show()
		defer l.hide()
	}
	users := map[storage.UserID]bool{}
	for _, u := range c.Users {
		if users[u.User] = true; u.What.Has(storage.Standing) {
			h.stood[u.User] = time.Now()
		}
	}
	for _, r := range c.Rows {
		users[r.Edge.From], users[r.Edge.To] = true, true
	}
	ctx := context.Background()
	for user := range users {
		for _, what := range []string{hidden, tokens, relation, requested, counts, profile, following, follower, mutes} {
			texts, err := look(ctx, h.shards, what, user)
			if err != nil {
				panic(err)
			}
			h.putAll(texts, a)
		}
	}
	for _, p := range c.Posts {
		if _, known := h.posts[p.PostID]; !known {
			h.posts[p.PostID] = time.Now()
		}
	}
	for user := range storage.UserID(numberOfUsers) {
		if users[user+1] || len(c.Posts) > 0 {
			h.putAll(h.feedIn(ctx, user+1), a)
		}
	}
}

func (h *history) putAll(texts map[key]string, a *attempt) {
	for k, text := range texts {
		h.put(k, text, a)
	}
}

// put adds a version, if it is another one. The lock is held.
func (h *history) put(k key, text string, a *attempt) {
	all := h.versions[k]
	if len(all) == 0 && k.what == feed {
		all = []version{{}} // before it was published
		h.versions[k] = all
	}
	if len(all) > 0 && all[len(all)-1].text == text && !h.restoring { // what says the same may have said something else since the backup
		return
	}
	h.versions[k] = append(all, version{at: time.Now(), text: text, restored: h.restoring})
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.at[k] = len(all)
	}
}

// find returns the last version with a text that was to be read at some moment between two; −1 if there is none.
func (h *history) find(k key, text string, from, to time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.versions[k]
	for i := len(all) - 1; i >= 0; i-- {
		ended := i+1 < len(all) && all[i+1].at.Before(from)
		if all[i].text == text && !all[i].at.After(to) && !ended {
			return i
		}
	}
	return -1
}

// fed reports whether the user of a feed may have been one that posts of the author come to, at some time: the relation that was read may be
// older than the post.
func (h *history) fed(k key, from, to time.Time) bool {
	return h.find(key{relation, k.user, k.other, 0}, "true", from, to) >= 0 && h.find(key{relation, k.user, k.other, 2}, "false", from, to) >= 0
}

// all returns the versions of a key.
func (h *history) all(k key) []version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.versions[k]
}

// keys are those of something of a user.
func (h *history) keys(what string, user storage.UserID) (list []key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.versions {
		if k.what == what && k.user == user {
			list = append(list, k)
		}
	}
	return list
}

// known are all posts that there have been.
func (h *history) known() []storage.PostID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Keys(h.posts), func(a, b storage.PostID) int { return cmp.Compare(a.Number, b.Number) })
}

// published is when a post was.
func (h *history) published(post storage.PostID) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, known := h.posts[post]
	return at, known
}

// isUnknown reports whether nothing is known of a post in a feed: it comes later.
func (h *history) isUnknown(k key) bool { return k.what == feed && len(h.all(k)) == 0 }

// hidden reports whether a user was hidden at some moment between two.
func (h *history) hidden(user storage.UserID, from, to time.Time) bool {
	return h.find(key{what: hidden, user: user}, "true", from, to) >= 0
}

// standing is when a user last got another state, or was suspended or reinstated.
func (h *history) standing(user storage.UserID) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stood[user]
}

// last returns the last of them.
func (h *history) last(k key) version {
	all := h.all(k)
	return all[len(all)-1]
}

func (v version) String() string { return fmt.Sprintf("%q at %s", v.text, v.at.Format("05.000000")) }

// chance is a number from 0 to 1 that follows from the seed and from what it is for, so that steps that are left out change no others.
func (w *world) chance(of ...any) float64 { return fraction(w.hash(of...)) }

func fraction(sum uint64) float64 { return float64(sum>>11) / (1 << 53) }

func (w *world) hash(of ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, of)
	x := h.Sum64()
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// delay waits for mostly a little, at most a time; never two for the same. What Go draws before and after it follows from that too.
func (w *world) delay(most time.Duration, of ...any) {
	sum := w.hash(append(of, time.Since(w.began))...)
	drawFrom(sum)
	time.Sleep(1 + time.Duration(fraction(sum)*fraction(sum)*float64(most)))
	drawFrom(sum)
}
