package cluster

import "testing"

// TestWaysToHear are all combinations of what a deployment consists of.
func TestWaysToHear(t *testing.T) {
	type deployment struct {
		redundancy             string
		redis, log, replicates bool
	}
	redis, alone := way{by: byRedis, forgets: true}, way{by: byRedis, forgets: true, alone: true}
	ways := map[deployment]way{
		{Sync, true, false, false}:   alone,
		{Sync, true, false, true}:    alone,
		{Stream, true, false, false}: redis,
		{Stream, true, false, true}:  alone,
		{Binlog, true, false, false}: {by: byRedis},
		{Binlog, true, false, true}:  {by: byRedis, alone: true},

		{Sync, true, true, false}:   {by: byRedis, forgets: true, alone: true, rows: true},
		{Sync, true, true, true}:    {by: byRedis, forgets: true, alone: true, rows: true},
		{Stream, true, true, false}: {by: byRedis, forgets: true, rows: true},
		{Stream, true, true, true}:  {by: byRedis, forgets: true, alone: true, rows: true},

		{Sync, false, false, false}:   {by: byBinlogs, alone: true},
		{Sync, false, false, true}:    {by: byBinlogs, alone: true},
		{Binlog, false, false, false}: {by: byBinlogs, always: true},
		{Binlog, false, false, true}:  {by: byBinlogs, always: true, alone: true},

		{Sync, false, true, false}: {alone: true, rows: true},
		{Sync, false, true, true}:  {alone: true, rows: true},
	}
	seen := 0
	for _, redundancy := range []string{Sync, Stream, Binlog} {
		for n := range 8 {
			d := deployment{redundancy, n&4 > 0, n&2 > 0, n&1 > 0}
			if d.redundancy == Stream && !d.redis || d.redundancy == Binlog && d.log {
				continue // the settings refuse these
			}
			seen++
			if got := (Config{Redundancy: redundancy}).way(d.redis, d.log, d.replicates); got != ways[d] {
				t.Errorf("%+v: %+v, want %+v", d, got, ways[d])
			}
		}
	}
	if seen != len(ways) {
		t.Errorf("%d combinations, and the table has %d", seen, len(ways))
	}
}
