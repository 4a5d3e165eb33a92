package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"kith/cluster"
	"kith/files/changes"
	"kith/files/graphfile"
	"kith/replication"
	"kith/storage"
	"kith/storage/contents"
	"kith/storage/sides"
	"kith/storage/sleep"
)

// reader makes a copy of what is told of changes, as docs/how-to/changes.md says: it writes a cursor down together with what it has made of
// what came before. It is slow, and killed now and then.
type reader struct {
	*gateway
	copy    map[string]string             // what was last told of each subject
	edges   map[storage.Pair]storage.Edge // follows and blocks of the copy
	differs map[string]string             // digests that do, and what the copy had
	proved  int                           // digests of what has rows
	cursor  string                        // empty: the copy is to be made anew
	exports int
	acked   int                             // writes that were acknowledged before the first
	follows map[storage.Pair]storage.Micros // that the first had
	ids     map[string]string               // what each event has told
	newest  map[string]time.Time            // of each subject in a log
	told    map[string]time.Time            // and of what is in the copy
	stop    func()
}

var errKilled = errors.New("killed")

// startReader starts one, if there are logs to read.
func (w *world) startReader() {
	if !w.one && w.Redundancy != cluster.Binlog {
		return
	}
	r := &reader{gateway: &gateway{world: w, name: "reader"}, ids: map[string]string{}, newest: map[string]time.Time{}}
	r.store = &handle{Store: w.shards, of: r.gateway}
	r.differs = map[string]string{}
	r.stop = cluster.InBackground(r.run)
	w.reader = r
}

func (r *reader) run(ctx context.Context) {
	cfg := changes.Config{Store: r.store, Logger: slog.New(slog.DiscardHandler)}
	if !r.one {
		cfg.Open = r.logs
	}
	for ctx.Err() == nil {
		cfg.After, cfg.Kinds = r.cursor, nil
		if r.chance("digests", time.Since(r.began)) < 0.5 {
			cfg.Kinds = append(slices.DeleteFunc(changes.Kinds(), func(k changes.Kind) bool { return k == changes.Counts && r.one }), changes.Digests)
		}
		var transaction []changes.Event
		err := changes.Run(ctx, cfg, func(e changes.Event) error {
			if e.Type == "kith.digests" {
				r.compare(e)
				return nil
			}
			r.delay(4*time.Millisecond, "reader", e.ID)
			if r.chance("reader is killed", e.ID, time.Since(r.began)) < 0.02 {
				return errKilled
			}
			if transaction = append(transaction, e); e.Cursor == "" {
				return nil
			}
			if r.cursor == "" {
				r.export()
			}
			for _, e := range transaction {
				r.take(e)
			}
			transaction, r.cursor = nil, e.Cursor
			return nil
		})
		if lost := (*changes.SnapshotNeeded)(nil); errors.As(err, &lost) {
			r.cursor = ""
		}
		r.note("the reader has read: %v", err)
		_ = sleep.For(ctx, time.Duration(1+r.chance("again", time.Since(r.began))*float64(time.Second)))
	}
}

// export copies the tables, in which all can be read that is in the logs.
func (r *reader) export() {
	r.history.awaitLogged(anyShard)
	r.copy = r.tables()
	r.newest, r.told = map[string]time.Time{}, map[string]time.Time{}
	r.edges, r.differs = map[storage.Pair]storage.Edge{}, map[string]string{}
	for _, pair := range pairs() {
		if e := storage.EdgeLookups[storage.Forward].Read(context.Background(), r.shards, pair)[0]; e.Value.Type != storage.None {
			r.edges[pair] = e.Value
		}
	}
	if r.exports++; r.exports > 1 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acked, r.follows = len(r.world.acked), map[storage.Pair]storage.Micros{}
	for _, pair := range pairs() {
		r.follows[pair] = storage.EdgeLookups[storage.Forward].Read(context.Background(), r.shards, pair)[0].Value.UpdateTime
	}
}

func pairs() (all []storage.Pair) {
	for from := storage.UserID(1); from <= numberOfUsers; from++ {
		for to := storage.UserID(1); to <= numberOfUsers; to++ {
			all = append(all, storage.Pair{From: from, To: to})
		}
	}
	return all
}

// tables are what the last event of each subject has told when all is quiet.
func (r *reader) tables() map[string]string {
	ctx, all := context.Background(), map[string]string{}
	for _, pair := range pairs() {
		if e := storage.EdgeLookups[storage.Forward].Read(ctx, r.shards, pair)[0]; e.Found {
			all["kith.follows "+nameOf(pair)] = toldOf(e.Value)
		}
	}
	if r.one { // the relation_log of the reference engine has edges only
		return all
	}
	for user := storage.UserID(1); user <= numberOfUsers; user++ {
		u, s := storage.UserLookups.Read(ctx, r.shards, user)[0], storage.StateLookups.Read(ctx, r.shards, user)[0]
		record, _ := graphfile.UserFormat.Record(contents.Account{User: u.Value, State: s.Value.State})
		until := "" // an export has it in the moderation log
		if s.Value.Until > 0 {
			until = string(graphfile.AppendTime(nil, s.Value.Until))
		}
		all[fmt.Sprint("kith.users ", user)] = text(slices.Concat(graphfile.UserFormat.Kind.Header(), []string{"suspended_until"}), append(record, until))
	}
	for _, id := range r.history.known() {
		is := "deleted"
		if p := storage.PostLookups.Read(ctx, r.shards, id)[0]; p.Found {
			is = p.Value.Text
		}
		all[fmt.Sprintf("kith.posts %d/%d", id.Author, id.Number)] = is
	}
	return all
}

func text(names, values []string) string {
	fields := map[string]string{}
	for i, name := range names {
		if values[i] != "" {
			fields[name] = values[i]
		}
	}
	return fmt.Sprint(fields)
}

func nameOf(pair storage.Pair) string { return fmt.Sprintf("%d/%d", pair.From, pair.To) }

func toldOf(e storage.Edge) string {
	return fmt.Sprint(e.Type == storage.Following, " ", since(e.UpdateTime))
}

// take writes down what an event tells, and compares it with what it has told before, and with what came before it.
func (r *reader) take(e changes.Event) {
	name, is, edge := e.Type+" "+e.Subject, "", storage.Edge{}
	switch e.Type {
	case "kith.users":
		if is = fmt.Sprint(e.Data); len(e.Subject) > 1 {
			return // who has registered
		}
	case "kith.posts":
		if is = e.Data["text"]; e.Data["deleted"] == "true" {
			is = "deleted"
		}
	case "kith.follows":
		_, _ = fmt.Sscanf(e.Subject, "%d/%d", &edge.From, &edge.To)
		_, edge.Type, _ = graphfile.Kind(e.Data["relation"]).Row()
		edge.UpdateTime = storage.MicrosOf(e.Time)
		is = toldOf(edge)
		id, order := e.Source+" "+e.ID, e.Source+" "+e.Subject
		switch told, again := r.ids[id]; {
		case again && told != name+is:
			r.fail(allTold, "%s has told %s, and then %s", id, told, name+is)
		case !again && e.Time.Before(r.newest[order]):
			r.fail(allTold, "%s tells %s after what was at %s", id, name+is, r.newest[order])
		}
		r.ids[id] = name + is
		r.newest[order] = later(r.newest[order], e.Time)
	default:
		return
	}
	if e.Type == "kith.follows" && e.Time.Before(r.told[name]) { // another log has told of it later: its user has moved
		return
	}
	r.copy[name], r.told[name] = is, e.Time
	if edge.From != 0 {
		r.edges[edge.Pair()] = edge
	}
}

// compare compares the copy with a digest. A commit may be in its log before it can be read: what differs has to differ again.
func (r *reader) compare(e changes.Event) {
	var own sides.Digest
	for pair, edge := range r.edges {
		if e.Data["kind"] == "follows" && edge.Type != storage.None && fmt.Sprint(pair.From.Bucket()) == e.Data["bucket"] {
			own = own.Plus(sides.Digest{Rows: 1, Mixed: edge.Mix()})
		}
	}
	is := fmt.Sprintf("%d rows %016x", own.Rows, own.Mixed)
	switch are := e.Data["rows"] + " rows " + e.Data["digest"]; {
	case e.Data["kind"] != "follows" || r.restored: // which takes back what others have told of
	case is == are:
		if delete(r.differs, e.Subject); own.Rows > 0 {
			r.proved++
		}
	case r.differs[e.Subject] == are+is:
		r.fail(allTold, "of %s the copy has %s, and the tables %s", e.Subject, is, are)
	default:
		r.differs[e.Subject] = are + is
	}
}

// checkReader compares the copy with the tables when all is quiet.
func (w *world) checkReader() {
	r := w.reader
	if r == nil {
		return
	}
	if is := r.tables(); !maps.Equal(r.copy, is) {
		for name := range is {
			if r.copy[name] != is[name] {
				w.fail(allTold, "%s is %q in the copy, and it is %q", name, r.copy[name], is[name])
			}
		}
		if len(r.copy) > len(is) && !w.restored { // a restore takes back what others have told of
			w.fail(allTold, "the copy has %v, and there is %v", r.copy, is)
		}
	}
	if r.exports > 1 {
		return
	}
	told := map[string]bool{}
	for _, is := range r.ids {
		told[is] = true
	}
	for _, row := range w.acked[r.acked:] {
		e := row.Edge
		is := "kith.follows " + nameOf(e.Pair()) + toldOf(e)
		if row.Side == storage.Forward && !told[is] && e.UpdateTime > r.follows[e.Pair()] {
			w.fail(allTold, "%s was acknowledged, and nothing told of it", is)
		}
	}
}

// logs are the binlogs, as package binlog reads them.
func (r *reader) logs(context.Context) (logs []replication.Log, closing func(), err error) {
	for shard := range r.shards.Shards() {
		logs = append(logs, readLog{r, shard})
	}
	return logs, func() {}, nil
}

type readLog struct {
	*reader
	shard int
}

func (l readLog) Name() string  { return fmt.Sprint("binlog/", l.shard) }
func (l readLog) Title() string { return "binlog" }
func (l readLog) Begin() string { return "" }
func (l readLog) End(context.Context) (string, error) {
	return l.end(l.shard).String(), nil
}

func (p place) String() string { return fmt.Sprintf("[%d,%d]", p.life, p.entries) }

func (l readLog) Read(ctx context.Context, _ storage.Answerer, after, upTo string, take func(replication.Changed) error) error {
	at, parts := place{l.end(l.shard).life, 0}, []int{}
	if json.Unmarshal([]byte(after), &parts) == nil {
		at = place{parts[0], parts[1]}
	}
	for upTo != at.String() {
		list, grew, has := l.next(l.shard, at)
		switch {
		case !has:
			return replication.ErrLost
		case l.store.awayFor()(l.shard):
			return errRefused
		}
		for _, c := range list {
			l.delay(8*time.Millisecond, "reader", l.shard, at.entries)
			if len(c.Users)+len(c.Posts) > 0 {
				l.history.awaitLogged(l.shard)
			}
			at.entries++
			reached := at.String()
			if err := take(replication.Changed{Change: c, ID: reached, At: func() (string, error) { return reached, nil }}); err != nil {
				return err
			}
			if reached == upTo {
				return nil
			}
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-grew:
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
