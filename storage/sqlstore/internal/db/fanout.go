package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/sqlstore/internal/db/prepared"
)

// A Part is the share of a batch that one statement answers: keys of one shard,
// as indexes into the batch.
type Part struct {
	Shard int
	At    []int
}

// Split parts a batch of n keys by shard, in statements of at most bound keys.
func (d *DB) Split(n, bound int, shardOf func(i int) int) []Part {
	if n == 1 {
		return []Part{{shardOf(0), []int{0}}}
	}
	byShard := make([][]int, len(d.All()))
	for i := range n {
		sh := shardOf(i)
		for sh >= len(byShard) { // it has just been added
			byShard = append(byShard, nil)
		}
		byShard[sh] = append(byShard[sh], i)
	}
	parts := make([]Part, 0, len(byShard))
	for sh, at := range byShard {
		for len(at) > bound {
			parts = append(parts, Part{sh, at[:bound]})
			at = at[bound:]
		}
		if len(at) > 0 {
			parts = append(parts, Part{sh, at})
		}
	}
	return parts
}

// AtOnce runs f for every part, all at once.
func AtOnce(parts []Part, f func(Part)) {
	if len(parts) == 1 {
		f(parts[0])
		return
	}
	var wg sync.WaitGroup
	for _, p := range parts[1:] {
		wg.Go(func() { f(p) })
	}
	f(parts[0])
	wg.Wait()
}

// lookUpAll runs the statements of a look-up. Servers work on them all at once. SQLite works in this process: a look-up takes one
// processor and not all, and statements at once would wait for one another at each page.
func (d *DB) lookUpAll(parts []Part, f func(Part)) {
	if d.Dialect != sqliteDialect {
		AtOnce(parts, f)
		return
	}
	for _, p := range parts {
		f(p)
	}
}

// LookUp answers a batch of comparable keys. For every part it runs read, which
// calls found once for each row; keys that occur again are answered by their
// first occurrence.
func LookUp[K comparable, V any](
	d *DB, keys []K, bound int, shardOf func(K) int,
	read func(shard int, keys []K, found func(K, V)) error,
) []storage.Result[V] {
	results := make([]storage.Result[V], len(keys))
	if len(keys) == 0 {
		return results
	}
	first := make(map[K]int, len(keys))
	unique := make([]K, 0, len(keys))
	for i, k := range keys {
		if _, ok := first[k]; !ok {
			first[k] = i
			unique = append(unique, k)
		}
	}
	parts := d.Split(len(unique), bound, func(i int) int { return shardOf(unique[i]) })
	d.lookUpAll(parts, func(p Part) {
		wanted := storage.Chosen(unique, p.At)
		err := read(p.Shard, wanted, func(k K, v V) {
			if i, ok := first[k]; ok {
				results[i] = storage.Result[V]{Value: v, Found: true}
			}
		})
		if err != nil {
			for _, k := range wanted {
				results[first[k]] = storage.Result[V]{Err: err}
			}
		}
	})
	if len(unique) < len(keys) {
		for i, k := range keys {
			results[i] = results[first[k]]
		}
	}
	return results
}

// Query runs one look-up on one shard, and calls each for every row. It applies the time limit,
// reports to the observer and translates the error.
func (d *DB) Query(ctx context.Context, lookup string, shard, keys int, text string, args []any, each func(*sql.Rows) error) error {
	outages := storage.OutagesOf(ctx)
	if err := outages.Of(shard); err != nil {
		return err
	}
	n := d.Shard(shard)
	if err := n.isSilent(); err != nil {
		err = fmt.Errorf("read %s on shard %d (%s): %w", lookup, shard, n.Name, err)
		d.cfg.OnStatement(ctx, Statement{Lookup: lookup, Shard: shard, Keys: keys, Err: err}) // as one that has failed
		return err
	}
	err := d.timed(ctx, lookup, shard, keys, n.Read, d.cfg.StatementTimeout, text, args, each)
	if d.Dialect == sqliteDialect {
		return err
	}
	n.heard(err)
	if errors.Is(err, errSilent) {
		outages.Note(shard, err)
	}
	return err
}

// Scan runs a SELECT of a scan on one shard, which takes longer than a look-up: under the
// writes' time limit. On a server it goes over the writes' connections, which have
// that limit there as well; On SQLite it would block the only such connection.
func (d *DB) Scan(ctx context.Context, what string, shard int, text string, args []any, each func(*sql.Rows) error) error {
	return d.timed(ctx, what, shard, 0, d.scanPool(shard), d.cfg.writeTimeout(), text, args, each)
}

// scanPool is where scans get their connections from, see [DB.Scan].
func (d *DB) scanPool(shard int) *sql.DB {
	if d.Dialect == sqliteDialect {
		return d.Shard(shard).Read
	}
	return d.Shard(shard).Write
}

// errSilent marks a statement that the server neither answered nor ended in time.
var errSilent = errors.New("the server is silent")

// timed runs a SELECT on one shard within a time limit.
func (d *DB) timed(ctx context.Context, what string, shard, keys int, pool querier, limit time.Duration, text string, args []any, each func(*sql.Rows) error) error {
	began := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, limit+d.Dialect.grace, errStatementTimeout)
	defer cancel()
	rows, err := 0, d.Shard(shard).inUse()
	if err == nil {
		rows, err = d.Dialect.scan(limited, pool, d.commented(ctx, text), args, each)
	}
	if err != nil {
		err = fmt.Errorf("read %s on shard %d (%s): %w", what, shard, d.Shard(shard).Name, d.Dialect.StorageError(limited, err))
	}
	d.observe(ctx, Statement{what, shard, keys, rows, time.Since(began), err, text, args})
	return err
}

// observe reports a statement that has ended.
func (d *DB) observe(ctx context.Context, s Statement) {
	storage.ReadsOf(ctx).Note(storage.Read{Lookup: s.Lookup, Shard: s.Shard, Keys: s.Keys, Rows: s.Rows, Took: s.Took, Err: s.Err})
	d.cfg.OnStatement(ctx, s)
}

type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// scan calls each for every row that a SELECT returns, and counts them. While a server works on it, its request waits.
func (d *Dialect) scan(ctx context.Context, pool querier, text string, args []any, each func(*sql.Rows) error) (read int, err error) {
	goOn := func() {}
	if d != sqliteDialect {
		goOn = storage.Wait(ctx)
	}
	rows, err := pool.QueryContext(ctx, text, args...)
	for try := 1; try < 8 && isFull(err) && pause(ctx, try); try++ {
		rows, err = pool.QueryContext(ctx, text, args...)
	}
	goOn()
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for ; rows.Next(); read++ {
		if err := each(rows); err != nil {
			return read, err
		}
	}
	return read, rows.Err()
}

// EachEntry reads rows, whose columns are a key and a value.
func EachEntry[K, V any](columns func(*K, *V) []any, take func(K, V)) func(*sql.Rows) error {
	var key K
	var value V
	into := columns(&key, &value)
	return func(rows *sql.Rows) error {
		key, value = *new(K), *new(V)
		if err := rows.Scan(into...); err != nil {
			return err
		}
		take(key, value)
		return nil
	}
}

// EachRow reads rows, whose columns are values of T.
func EachRow[T any](columns func(*T) []any, take func(T)) func(*sql.Rows) error {
	return EachEntry(func(row *T, _ *struct{}) []any { return columns(row) }, func(row T, _ struct{}) { take(row) })
}

// AppendTo reads rows, whose columns are values of T, into a list.
func AppendTo[T any](list *[]T, columns func(*T) []any) func(*sql.Rows) error {
	return EachRow(columns, func(row T) { *list = append(*list, row) })
}

// OneColumn is for rows that are one value.
func OneColumn[T any](value *T) []any { return []any{value} }

// TwoColumns are for rows that are a key and a value.
func TwoColumns[K, V any](key *K, value *V) []any { return []any{key, value} }

// Arguments turns ids into what database/sql takes.
func Arguments[T ~int64](ids []T) []any {
	return storage.Each(ids, func(id T) any { return int64(id) })
}

// requestID is what may be in a comment: nothing that ends it, or that makes a server take it for an executable
// one.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// commented puts the id of the request into a statement. The comment is in front, because a list of processes shows only
// how a statement begins. Statements with an id are all different, so that none is prepared: see [prepared.Once].
func (d *DB) commented(ctx context.Context, text string) string {
	if d.cfg.RequestID == nil {
		return text
	}
	id := d.cfg.RequestID(ctx)
	if !requestID.MatchString(id) {
		return text
	}
	return prepared.Once + "request=" + id + " */ " + text
}
