// Package replication keeps `follower` what `following` is, and `friend_request_inbox`
// what `friend_request` is: it takes rows that were written to the forward table of a
// pair, from whatever source reports them, and applies them to the inverse one, on
// whichever shard owns them. What follows from a row there, such as the end of a follow
// from a block, is a forward row again, and is carried on.
//
// The sources are in the folders below: the binlog of each server, a Redis Stream,
// the call itself. The binlogs hand their rows to one [Applier], each through a [Feed]
// of its own; the others to a [Carrier]. A row may arrive twice, late or out of order:
// applying is guarded by the edge's version (see [storage.EdgeWriter]).
package replication
