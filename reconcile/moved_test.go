package reconcile_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/reconcile"
	"kith/replication"
	"kith/storage"
	"kith/storage/sqlstore"
)

// moving is a store of two shards between which buckets move.
type moving struct {
	*sqlstore.Store
	t     *testing.T
	users int
	rows  int64
}

// onTwoShards runs f for a store of two shards on each engine.
func onTwoShards(t *testing.T, f func(*moving)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		f(newMoving(t, "sqlite:"+filepath.Join(dir, "a.db")+";"+filepath.Join(dir, "b.db")))
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		testenv.NotOn(t, "TiDB spreads itself", "tidb")
		dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)
		f(newMoving(t, "mysql:"+dsns[0]+";"+dsns[1]))
	})
}

// newMoving makes users, each of whom follows the next three.
func newMoving(t *testing.T, location string) *moving {
	t.Helper()
	s := opened.Store(t, sqlstore.Config{Location: location})
	m := &moving{Store: s, t: t, users: 90}
	watching, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go s.Watch(watching)
	var users []storage.User
	for id := 1; id <= m.users; id++ {
		users = append(users, storage.User{ID: storage.UserID(id), Handle: fmt.Sprintf("user%d", id), Name: "N"})
	}
	must.All(t, s.CreateUsers(t.Context(), users))
	for id := 1; id <= m.users; id++ {
		for n := 1; n <= 3; n++ {
			m.follow(storage.UserID(id), storage.UserID((id+n-1)%m.users+1), storage.Following)
			m.rows++
		}
	}
	return m
}

// follow writes both sides.
func (m *moving) follow(from, to storage.UserID, kind storage.EdgeType) {
	changed := m.ChangeEdges(context.Background(), storage.Forward, from, []storage.EdgeChange{{To: to, Type: kind, At: storage.MicrosOf(time.Now())}}, storage.ChangeOptions{})[0]
	if changed.Err != nil {
		m.t.Error(changed.Err)
		return
	}
	check.Is(m.t, "the other side", m.Apply(context.Background(), storage.Inverse, []storage.Edge{changed.Value.Row}, storage.IfNewer)[0].Err, nil)
}

// move moves half of the buckets of a shard to the other one.
func (m *moving) move(from int) {
	m.t.Helper()
	claims := m.ShardsStatus()[from].Buckets
	r := claims[len(claims)-1]
	plan := sqlstore.Move{Buckets: storage.BucketRange{First: r.First + r.Len()/2, Last: r.Last}, From: from, To: 1 - from}
	_, err := m.Move(context.Background(), plan, sqlstore.MoveConfig{Token: "test", Keep: 10 * time.Millisecond})
	check.Is(m.t, plan, err, nil)
}

// lose removes the inverse row of a follow, and nothing else.
func (m *moving) lose(p storage.Pair) {
	m.t.Helper()
	m.exec(m.ShardOf(p.To), "DELETE FROM follower WHERE to_user_id = ? AND from_user_id = ?", p.To, p.From)
}

// exec changes one row of a shard.
func (m *moving) exec(shard int, text string, a, b storage.UserID) {
	m.t.Helper()
	driver := "sqlite"
	if !m.HasLog() {
		driver = "mysql"
	}
	db, err := sql.Open(driver, m.Addresses()[shard])
	must.OK(m.t, err)
	defer db.Close()
	result, err := db.Exec(text, int64(a), int64(b))
	must.OK(m.t, err)
	n, err := result.RowsAffected()
	must.That(m.t, err == nil && n == 1, "%d rows changed, %v", n, err)
}

// scan compares everything in ranges of a few owners. At some numbers of commits, buckets move.
func (m *moving) scan(window time.Duration, moveAt map[int]int) reconcile.Report {
	m.t.Helper()
	commits := 0
	report, err := reconcile.Full(m.t.Context(), reconcile.FullConfig{
		Store: m.Store, Window: window, Owners: 5, MaxLoad: 1, Restart: true, GroupRows: 1,
		OnProgress: func(reconcile.Progress) {
			if from, now := moveAt[commits]; now {
				m.move(from)
			}
			commits++
		},
	})
	must.OK(m.t, err)
	return report
}

// While owners are walked through, half of a shard's buckets move to the other shard, and some later move back.
// Each row is digested once, each lost row is found once, and nothing else is found.
func TestBucketsMoveDuringAFullScan(t *testing.T) {
	onTwoShards(t, func(m *moving) {
		lost := []storage.Pair{{From: 3, To: 5}, {From: 44, To: 45}, {From: 88, To: 90}}
		for _, p := range lost {
			m.lose(p)
		}
		moved := false
		for _, moveAt := range []map[int]int{{4: 0}, {11: 1, 30: 0}, {2: 1, 45: 1}} {
			before := m.Map().Now()
			r := m.scan(time.Millisecond, moveAt)
			for b := range storage.Buckets {
				was, _ := before.Owner(b)
				is, _ := m.Map().Now().Owner(b)
				moved = moved || was != is
			}
			check.Equal(m.t, fmt.Sprint("rows of the truth, ", moveAt), r.Rows[storage.Forward], m.rows)
			check.Equal(m.t, fmt.Sprint("rows of the replica, ", moveAt), r.Rows[storage.Inverse], m.rows-int64(len(lost)))
			check.That(m.t, r.Total() == len(lost) && r.Found[reconcile.Missing] == len(lost), "%v: found %v", moveAt, r.Findings)
		}
		check.That(m.t, moved, "no bucket has moved")
	})
}

// While others write and buckets move back and forth, scans find the lost rows, and nothing else.
func TestFullScansWhileBucketsMoveUnderWrites(t *testing.T) {
	onTwoShards(t, func(m *moving) {
		stable := storage.Pair{From: 7, To: 9}
		m.lose(stable)
		ctx, stop := context.WithCancel(m.t.Context())
		done := make(chan struct{}, 2)
		go func() { // each pair has one writer
			defer func() { done <- struct{}{} }()
			r := rand.New(rand.NewPCG(1, 2))
			for ctx.Err() == nil {
				from := storage.UserID(1 + r.IntN(m.users))
				m.follow(from, from%storage.UserID(m.users-10)+10+from%2, []storage.EdgeType{storage.None, storage.Following}[r.IntN(2)])
				time.Sleep(2 * time.Millisecond)
			}
		}()
		moves := make(chan int, 100)
		go func() {
			defer func() { done <- struct{}{} }()
			for n := 0; ctx.Err() == nil && n < 100; n++ {
				m.move(n % 2)
				moves <- n
				time.Sleep(300 * time.Millisecond)
			}
		}()
		for scans := 0; scans < 2 || len(moves) < 2; scans++ {
			r := m.scan(300*time.Millisecond, nil)
			check.That(m.t, r.Total() == 1 && len(r.Findings) == 1 && r.Findings[0].Pair() == stable, "found %v", r.Findings)
		}
		stop()
		<-done
		<-done
	})
}

// later is a log that is read when another one has been.
type later struct {
	replication.Log
	read chan struct{}
}

func (l later) Read(ctx context.Context, from storage.Answerer, after, upTo string, take func(replication.Changed) error) error {
	<-l.read
	return l.Log.Read(ctx, from, after, upTo, take)
}

// first is the other one.
type first struct{ later }

func (l first) Read(ctx context.Context, from storage.Answerer, after, upTo string, take func(replication.Changed) error) error {
	defer close(l.read)
	return l.Log.Read(ctx, from, after, upTo, take)
}

// Rows of an edge are in the logs of two shards after a move, and the newer one may be read before: a row that was lost is found all the same.
func TestIncrementalFindsWhatWasLostAfterAMove(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.incremental(t, nil)
	e := storage.Edge{From: 1, To: 2, Type: storage.Following}
	for w.ShardOf(e.From) != 0 {
		e.From++
	}
	for w.ShardOf(e.To) != 0 || e.To == e.From {
		e.To++
	}
	w.write(t, storage.Forward, e, false)
	bucket := storage.BucketRange{First: e.From.Bucket(), Last: e.From.Bucket()}
	_, err := w.Move(t.Context(), sqlstore.Move{Buckets: bucket, From: 0, To: 1}, sqlstore.MoveConfig{Token: "test"})
	must.OK(t, err)
	e.Type = storage.None
	w.write(t, storage.Forward, e, true)
	read := make(chan struct{})
	w.logs = []replication.Log{later{w.logs[0], read}, first{later{w.logs[1], read}}}
	r := w.incremental(t, nil)
	check.That(t, r.Repaired[reconcile.WrongType] == 1 && r.Left() == 0, "%+v", r)
}

// A repair ends the few rows whose other sides are missing, also on a shard to which buckets have moved after their rows were digested.
func TestFewRowsOfBucketsThatHaveMovedAreEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newMoving(t, "sqlite:"+filepath.Join(dir, "a.db"))
	added, err := m.AddShard(t.Context(), filepath.Join(dir, "b.db"))
	must.OK(t, err)
	for _, from := range []storage.UserID{3, 44, 88} {
		m.exec(0, "DELETE FROM following WHERE from_user_id = ? AND to_user_id = ?", from, from%90+1)
	}
	moved := false
	r, err := reconcile.Full(t.Context(), reconcile.FullConfig{
		Store: m.Store, Window: time.Millisecond, Owners: 5, MaxLoad: 1, GroupRows: 1, Repair: true, MaxEnded: 0.01,
		OnProgress: func(p reconcile.Progress) {
			if p.Rows > 300 && !moved { // 267 of them are of the truth
				moved = true
				_, err := m.Move(context.Background(), sqlstore.Move{Buckets: storage.BucketRange{First: 0, Last: storage.Buckets - 1}, From: 0, To: added}, sqlstore.MoveConfig{Token: "test"})
				check.That(t, err == nil, "%v", err)
			}
		},
	})
	check.That(t, err == nil && r.Repaired[reconcile.Extra] == 3, "%v: %+v", err, r)
}

// overtaken is a store whose user moves just before its counts are repaired. The old rows are kept.
type overtaken struct {
	*moving
	user storage.UserID
	ctx  context.Context
}

func (s overtaken) Recount(ctx context.Context, side storage.Side, users []storage.UserID) []storage.Result[bool] {
	bucket, from := storage.BucketRange{First: s.user.Bucket(), Last: s.user.Bucket()}, s.ShardOf(s.user)
	go func() {
		_, _ = s.Move(s.ctx, sqlstore.Move{Buckets: bucket, From: from, To: 1 - from}, sqlstore.MoveConfig{Token: "test", Keep: time.Hour})
	}()
	for s.ShardOf(s.user) == from && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return s.moving.Recount(ctx, side, users)
}

// A count that was repaired where its user has moved is not left.
func TestACountIsRepairedWhereItsUserHasMoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newMoving(t, "sqlite:"+filepath.Join(dir, "a.db")+";"+filepath.Join(dir, "b.db"))
	m.exec(m.ShardOf(3), "UPDATE user_counts SET follower_count = follower_count + ? WHERE user_id = ?", 5, 3)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := reconcile.Full(ctx, reconcile.FullConfig{Store: overtaken{m, 3, ctx}, Window: time.Millisecond, MaxLoad: 1, Repair: true})
	check.That(t, err == nil && r.Repaired[reconcile.WrongCount] == 1 && r.Left() == 0, "%v: %+v", err, r)
}
