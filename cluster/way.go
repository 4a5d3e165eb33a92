package cluster

// way is how a process hears of what the others on its store write. It follows from the deployment, and is made once, at the start.
type way struct {
	by source

	always  bool // binlogs are followed even while the process is alone: the replicator that writes may be another process
	alone   bool // a process that is alone sees all changes itself
	forgets bool // nobody else reports what a process has written that is killed before it has: then everybody forgets everything
	rows    bool // a relation_log shows rows, and nothing else, to all processes
}

// source is what shows a process the changes of others, with everything that caches need.
type source uint8

const (
	nothing   source = iota // caches in memory are off while there are other processes
	byRedis                 // each process sends what it has written
	byBinlogs               // each gateway follows the servers' binlogs, if there are any
)

// way of a process with a Redis or without, on an engine that has a relation_log in place of a binlog, which runs the replicator or does not.
func (d Config) way(redis, log, replicates bool) way {
	w := way{alone: replicates || d.Redundancy == Sync, rows: log}
	switch {
	case redis:
		w.by, w.forgets = byRedis, d.Redundancy != Binlog
	case !log:
		w.by, w.always = byBinlogs, d.Redundancy == Binlog
	}
	return w
}
