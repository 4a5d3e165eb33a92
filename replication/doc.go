// Package replication keeps `follower` in step with `following`, `friend_request_inbox` with `friend_request`, `favorite_inbox` with `favorite`, and
// `relation_inbox` with `relation`. It takes rows that were written to the forward table of a pair, from whichever source reports them, and applies
// them to the inverse table, on the shard that owns them. A consequence of a row there, such as the end of a follow after a block, is a forward row
// again, and is propagated.
//
// The sources are the binlog of each server and a Redis Stream, in the folders below, and the call itself, see [Synchronous].
// Each binlog passes its rows to one shared [Applier] through its own [Feed]; the other sources use
// a [Propagator]. A row may arrive twice, late or out of order: the edge's version guards each write
// (see [storage.EdgeWriter]).
package replication
