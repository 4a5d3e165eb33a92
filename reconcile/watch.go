package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage"
	"kith/storage/metrics"
	"kith/storage/sleep"
)

// A Question has a list as its answer, with an element for each user that it is about, or for each pair of them. A feed is one element.
type Question struct {
	Kind     string
	Query    string           // of GraphQL, with the variables from and to
	Viewer   storage.UserID   // 0: nobody
	From, To []storage.UserID // To is of relations only
}

// An Asker answers questions: `{"data":{"a":` and the list.
type Asker func(ctx context.Context, q Question) (answer []byte, err error)

// The kinds of questions.
const (
	ofUsers, ofLists, ofRelations, ofFeeds = "users", "lists", "relations", "feeds"

	queryOfUsers     = `query($from:[ID!]!){a:users(by:{ids:$from}){id handle name bio locked followingCount followerCount friendCount postCount}}`
	queryOfLists     = `query($from:[ID!]!){a:users(by:{ids:$from}){id followings(first:100){totalCount nodes{id}}followers(first:100){totalCount nodes{id}}posts(first:20){nodes{id text}}}}`
	queryOfRelations = `query($from:[ID!]!,$to:[ID!]!){a:relationships(from:$from,to:$to){following followedBy}}`
	queryOfFeeds     = `{a:viewer{feed(first:50){nodes{id}}}}`
)

// WatchConfig is what a [Watch] needs.
type WatchConfig struct {
	Store    storage.ShardAnswerer                  // the tables
	Gateways func(context.Context) map[string]Asker // those that there are now, by their addresses
	Tables   Asker                                  // answers from the tables alone
	Hidden   func() []storage.UserID                // who is hidden, by the tables
	Window   time.Duration                          // how long an answer may be older than the tables
	CPU      func() time.Duration                   // that the process has used
	Share    float64                                // of a core that it may use
	Metrics  prometheus.Registerer
	Logger   *slog.Logger
}

// Watch compares what gateways answer with the tables. An answer that differs is asked for again after the window: it is wrong if it is still
// the same, and neither the answer of the tables nor the version of any user concerned has changed in between.
type Watch struct {
	WatchConfig
	compared, differed *prometheus.CounterVec

	away     map[string]bool // gateways that did not answer the last question
	suspects []suspect
	pool     []storage.UserID // who is asked about, the last poolSize: the newest at the end
	sweep    storage.ShardQuery[storage.UserID]
}

// suspect is an element that differs from the tables.
type suspect struct {
	question      Question
	name          string // of the gateway
	ask           Asker
	answer, truth []byte
	versions      []int64
	since, due    time.Time
	tries         int
}

const (
	poolSize     = 4096
	mostSuspects = 1000 // when there are so many, nothing else is asked
	mostTries    = 20   // of a suspect whose tables keep changing
	maxShown     = 300  // bytes of an answer in the log
)

var errIncomplete = errors.New("the answer is not complete")

// NewWatch makes a watch.
func NewWatch(cfg WatchConfig) *Watch {
	made := metrics.In(cfg.Metrics)
	w := &Watch{
		WatchConfig: cfg,
		away:        map[string]bool{},
		compared:    made.Counters("kith_audit_compared_total", "Parts of gateways' answers that were compared with the tables, by kind.", "kind"),
		differed:    made.Counters("kith_audit_differed_total", "Of those, how many differed for longer than the window, by kind.", "kind"),
	}
	w.sweep.Limit = 20
	for _, kind := range []string{ofUsers, ofLists, ofRelations, ofFeeds} {
		w.compared.WithLabelValues(kind)
		w.differed.WithLabelValues(kind)
	}
	return w
}

// Run compares until the context is done, and rests so that the process uses its share.
func (w *Watch) Run(ctx context.Context) error {
	began, used, rest := time.Now(), w.CPU(), time.Duration(0)
	for ctx.Err() == nil {
		for name, ask := range w.Gateways(ctx) {
			w.settle(ctx)
			if len(w.suspects) < mostSuspects {
				w.round(ctx, name, ask)
			}
			now, cpu := time.Now(), w.CPU() // all that the process has used, also meanwhile
			rest = max(0, rest+time.Duration(float64(cpu-used)/w.Share)-now.Sub(began))
			began, used = now, cpu
			_ = sleep.For(ctx, max(time.Millisecond, rest))
		}
	}
	return nil
}

// round asks a gateway about some users.
func (w *Watch) round(ctx context.Context, name string, ask Asker) {
	w.fill(ctx)
	if len(w.pool) == 0 {
		return
	}
	viewer := w.some(1)[0]
	users := w.some(200)
	if hidden := w.Hidden(); len(hidden) > 0 {
		for range 20 {
			users = append(users, hidden[rand.IntN(len(hidden))])
		}
	}
	newest := w.pool[max(0, len(w.pool)-200):]
	for _, q := range []Question{
		{Kind: ofUsers, Query: queryOfUsers, From: users},
		{Kind: ofLists, Query: queryOfLists, Viewer: viewer, From: append(w.some(8), newest[:min(2, len(newest))]...)},
		{Kind: ofRelations, Query: queryOfRelations, From: w.some(10), To: slices.Clone(newest)},
		{Kind: ofFeeds, Query: queryOfFeeds, Viewer: viewer},
	} {
		w.compare(ctx, name, ask, q)
	}
}

// fill adds the next users of a shard to the pool, and whom some of them follow.
func (w *Watch) fill(ctx context.Context) {
	swept, err := storage.UserIDLookups.Get(ctx, w.Store, w.sweep)
	if err != nil || len(swept) < w.sweep.Limit {
		w.sweep.Shard, w.sweep.After = (w.sweep.Shard+1)%w.Store.Shards(), 0
	} else {
		w.sweep.After = swept[len(swept)-1]
	}
	for _, id := range swept[:min(2, len(swept))] {
		page := storage.PageLookups[storage.Forward].Read(ctx, w.Store, storage.PageQuery{Owner: id, Limit: 90})[0]
		w.pool = append(w.pool, id)
		w.pool = append(w.pool, storage.Each(page.Value, func(e storage.Edge) storage.UserID { return e.To })...)
	}
	w.pool = slices.Delete(append(w.pool, swept...), 0, max(0, len(w.pool)+len(swept)-poolSize))
	if len(w.pool) == 0 && err == nil {
		w.pool = append(w.pool, 1) // of a store without users no gateway may show any
	}
}

// some are users of the pool.
func (w *Watch) some(n int) []storage.UserID {
	list := make([]storage.UserID, n)
	for i := range list {
		list[i] = w.pool[rand.IntN(len(w.pool))]
	}
	return list
}

// compare compares two answers, and suspects the elements that differ.
func (w *Watch) compare(ctx context.Context, name string, ask Asker, q Question) {
	answer, err := ask(ctx, q)
	w.tell(ctx, name, err)
	truth, failed := w.Tables(ctx, q)
	if err == nil && failed == nil && bytes.Equal(answer, truth) && bytes.HasPrefix(truth, []byte(`{"data"`)) {
		w.compared.WithLabelValues(q.Kind).Add(q.size(truth))
		return
	}
	answers, err := elements(answer, err)
	truths, failed := elements(truth, failed)
	if err != nil || failed != nil || len(answers) != len(truths) || len(w.suspects) >= 2*mostSuspects {
		return // a gateway or a shard does not answer
	}
	for i := range truths {
		if bytes.Equal(answers[i], truths[i]) {
			w.compared.WithLabelValues(q.Kind).Add(q.element(i).size(truths[i]))
			continue
		}
		one := suspect{question: q.element(i), name: name, ask: ask, answer: answers[i], truth: truths[i], since: time.Now()}
		one.versions, one.due = w.versions(ctx, one.question), one.since.Add(min(time.Second, w.Window))
		w.suspects = append(w.suspects, one)
	}
}

// tell logs when a gateway stops or begins to answer.
func (w *Watch) tell(ctx context.Context, name string, err error) {
	switch away := w.away[name]; {
	case err != nil && !away && ctx.Err() == nil:
		w.away[name] = true
		w.Logger.WarnContext(ctx, "reconcile: a gateway does not answer: asking again", "gateway", name, "error", err)
	case err == nil && away:
		delete(w.away, name)
		w.Logger.InfoContext(ctx, "reconcile: the gateway answers again", "gateway", name)
	}
}

// settle asks about the suspects again: soon, when most have been late only, and when the window is over.
func (w *Watch) settle(ctx context.Context) {
	due := w.suspects
	w.suspects = nil
	for _, one := range due {
		if now := time.Now(); !now.Before(one.due) {
			if w.isSettled(ctx, &one, now) || one.tries == mostTries {
				continue
			}
			one.tries, one.due = one.tries+1, one.since.Add(w.Window)
		}
		w.suspects = append(w.suspects, one)
	}
}

// isSettled asks about a suspect again. If anything about it has changed, its window begins anew.
func (w *Watch) isSettled(ctx context.Context, one *suspect, now time.Time) bool {
	q := one.question
	answer, err := first(one.ask(ctx, q))
	truth, failed := first(w.Tables(ctx, q))
	versions := w.versions(ctx, q)
	switch {
	case err != nil || failed != nil || versions == nil:
		one.since = now
		return false
	case bytes.Equal(answer, truth):
		w.compared.WithLabelValues(q.Kind).Add(q.size(truth))
		return true
	case !bytes.Equal(truth, one.truth) || !bytes.Equal(answer, one.answer) || !slices.Equal(versions, one.versions):
		one.answer, one.truth, one.versions, one.since = answer, truth, versions, now
		return false
	case now.Sub(one.since) < w.Window:
		return false
	}
	w.compared.WithLabelValues(q.Kind).Add(q.size(truth))
	w.differed.WithLabelValues(q.Kind).Inc()
	w.Logger.ErrorContext(ctx, "an answer differs from the tables", "of", one.name, "kind", q.Kind, "viewer", q.Viewer, "from", q.From, "to", q.To,
		"answer", shown(answer), "tables", shown(truth))
	return true
}

// versions are those of the users whom a question is about; nil: a shard does not answer.
func (w *Watch) versions(ctx context.Context, q Question) (all []int64) {
	ids := slices.Concat(q.From, q.To, []storage.UserID{q.Viewer})
	for _, r := range storage.CountLookups.Read(ctx, w.Store, ids...) {
		if r.Err != nil {
			return nil
		}
		all = append(all, r.Value.Version)
	}
	return all
}

// element is the question about one element of the answer.
func (q Question) element(i int) Question {
	switch {
	case len(q.To) > 0:
		q.From, q.To = q.From[i/len(q.To):][:1], q.To[i%len(q.To):][:1]
	case len(q.From) > 0:
		q.From = q.From[i:][:1]
	}
	return q
}

// size is how many users, relations and posts an answer says something about.
func (q Question) size(answer []byte) float64 {
	if q.Kind == ofLists || q.Kind == ofFeeds {
		return float64(max(1, bytes.Count(answer, []byte(`"id":`))))
	}
	return float64(len(q.From) * max(1, len(q.To)))
}

// elements are those of an answer.
func elements(text []byte, err error) ([]json.RawMessage, error) {
	var answer struct {
		Data   struct{ A json.RawMessage }
		Errors []json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil || len(answer.Errors) > 0 {
		return nil, errors.Join(err, errIncomplete)
	}
	if !bytes.HasPrefix(answer.Data.A, []byte("[")) {
		return []json.RawMessage{answer.Data.A}, nil
	}
	var list []json.RawMessage
	err = json.Unmarshal(answer.Data.A, &list)
	return list, err
}

func first(text []byte, err error) ([]byte, error) {
	list, err := elements(text, err)
	if err != nil || len(list) != 1 {
		return nil, errors.Join(err, errIncomplete)
	}
	return list[0], nil
}

func shown(answer []byte) string { return string(answer[:min(len(answer), maxShown)]) }
