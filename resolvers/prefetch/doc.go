// Package prefetch reads what the fields of a request need before their resolvers run, as far as the viewer may see it: all root fields
// and everything below them, level by level, each level in one batch for each look-up. So no field waits for a loader's timer. It knows
// users, because everything is seen or not by its owner's row; it knows no other topic.
//
// The words of it: a [Field], an [Inset] or a [PlaceList] is a field that is prefetched, in the file of its topic: how its arguments are
// parsed, what it asks a [Level] for, and how what was read is shown. [Objects] are objects on one level, with the selections on them. A
// [Page] is what has been read of a list. [Inputs] are a list that a client has given, with the errors in it. [Access] says what the
// viewer may see.
package prefetch
