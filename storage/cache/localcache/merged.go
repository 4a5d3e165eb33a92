package localcache

import (
	"context"
	"fmt"
)

// mergedScan yields what each shard of a store lists in some order, in that order over all shards.
type mergedScan[T any] struct {
	compare func(a, b T) int
	// read lists what comes behind something on one shard, the zero value before all, at most limit.
	read   func(ctx context.Context, shard int, after T, limit int) ([]T, error)
	limit  int
	shards []readAhead[T]
}

// readAhead is what has been read of a shard and not been taken.
type readAhead[T any] struct {
	ahead []T
	last  T
	end   bool
}

// next takes the first of all shards. ok is false at the end.
func (m *mergedScan[T]) next(ctx context.Context) (first T, ok bool, err error) {
	var of *readAhead[T]
	for shard := range m.shards {
		s := &m.shards[shard]
		if len(s.ahead) == 0 && !s.end {
			if s.ahead, err = m.read(ctx, shard, s.last, m.limit); err != nil {
				return first, false, fmt.Errorf("list users of shard %d: %w", shard, err)
			}
			if s.end = len(s.ahead) < m.limit; len(s.ahead) > 0 {
				s.last = s.ahead[len(s.ahead)-1]
			}
		}
		if len(s.ahead) > 0 && (of == nil || m.compare(s.ahead[0], of.ahead[0]) < 0) {
			of = s
		}
	}
	if of == nil {
		return first, false, nil
	}
	first, of.ahead = of.ahead[0], of.ahead[1:]
	return first, true, nil
}
