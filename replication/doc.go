// Package replication keeps `follower` what `following` is: it takes rows that were
// written to the forward side of edges, from whatever source reports them, and
// applies them to the inverse side, on whichever shard owns them.
//
// The sources are in the folders below: the binlog of each server, a Redis Stream,
// the relation_log of engines without a binlog. All hand their rows to one
// [Applier], each through a [Feed] of its own. A row may arrive twice, late or out
// of order: applying is guarded by the edge's version (see [storage.EdgeWriter]).
package replication
