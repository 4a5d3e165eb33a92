package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"kith/storage"
)

// A part is the share of a batch that one statement answers: keys of one shard,
// as indexes into the batch.
type part struct {
	shard int
	at    []int
}

// split parts a batch of n keys by shard, in statements of at most bound keys.
func (s *Store) split(n, bound int, shardOf func(i int) int) []part {
	if n == 1 {
		return []part{{shardOf(0), []int{0}}}
	}
	byShard := make([][]int, len(s.shards))
	for i := range n {
		sh := shardOf(i)
		byShard[sh] = append(byShard[sh], i)
	}
	parts := make([]part, 0, len(s.shards))
	for sh, at := range byShard {
		for len(at) > bound {
			parts = append(parts, part{sh, at[:bound]})
			at = at[bound:]
		}
		if len(at) > 0 {
			parts = append(parts, part{sh, at})
		}
	}
	return parts
}

// atOnce runs f for every part, all at once.
func atOnce(parts []part, f func(part)) {
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

// lookUp answers a batch of comparable keys. For every part it runs read, which
// calls found once for each row; keys that occur again are answered by their
// first occurrence.
func lookUp[K comparable, V any](
	s *Store, keys []K, bound int, shardOf func(K) int,
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
	parts := s.split(len(unique), bound, func(i int) int { return shardOf(unique[i]) })
	atOnce(parts, func(p part) {
		wanted := unique
		if len(p.at) != len(unique) {
			wanted = make([]K, len(p.at))
			for j, i := range p.at {
				wanted[j] = unique[i]
			}
		}
		err := read(p.shard, wanted, func(k K, v V) {
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

// query runs one look-up on one shard, calls each for every row, and sees to the
// time limit, to the observer and to the error's translation.
func (s *Store) query(ctx context.Context, lookup string, shard, keys int, text string, args []any, each func(*sql.Rows) error) error {
	outages := storage.OutagesOf(ctx)
	if err := outages.Of(shard); err != nil {
		return err
	}
	err := s.timed(ctx, lookup, shard, keys, s.shards[shard].read, s.cfg.StatementTimeout, text, args, each)
	if s.sql.grace > 0 && errors.Is(err, errSilent) {
		outages.Note(shard, err)
	}
	return err
}

// errSilent marks a statement that the server neither answered nor ended in time.
var errSilent = errors.New("the server is silent")

// timed runs a SELECT on one shard within a time limit.
func (s *Store) timed(ctx context.Context, what string, shard, keys int, db querier, limit time.Duration, text string, args []any, each func(*sql.Rows) error) error {
	began := time.Now()
	limited, cancel := withStatementTimeout(ctx, limit+s.sql.grace)
	defer cancel()
	err := scan(limited, db, text, args, each)
	if err != nil {
		err = fmt.Errorf("read %s on shard %d (%s): %w", what, shard, s.shards[shard].name, s.sql.storageError(limited, err))
	}
	s.cfg.OnStatement(ctx, Statement{what, shard, keys, time.Since(began), err, text, args})
	return err
}

type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

func scan(ctx context.Context, db querier, text string, args []any, each func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// arguments turns ids into what database/sql takes.
func arguments[T ~int64](ids []T) []any {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = int64(id)
	}
	return args
}
