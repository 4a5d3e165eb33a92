// Package idset keeps a user's followings or followers in memory: as a compressed set, with the
// order of time beside it. Common lists of celebrities, "which of my followings follow this user"
// and suggestions are set operations. They take microseconds on sets and far longer on rows. The
// rows stay the source of truth: a list here is an index over them, built from them and updated by
// their changes.
//
//   - A [Directory] numbers users densely, so that bitmaps work on ids made by time, too.
//   - A [Set] is users by number, in chunks: bitmaps and short lists.
//   - A [Timeline] is positions, newest first, in packed blocks.
//   - A [List] is both.
//   - [AppendChunk] writes ids with their times, not numbers, so that any process can read
//     what another has stored; [ParseChunk] and [ParsePeers] read it.
//
// All of them but the directory, which grows, are immutable: a change makes another version, which
// shares everything unchanged with the version before. A change to a list of 10 million copies some
// tens of kilobytes.
//
// The idea is the packed list of uids of Chinese micro-blogs' designs, cut into chunks;
// the idea of bitmaps and lists by pages of 65,536 is Roaring's (Lemire et al. 2016).
package idset

import "kith/storage"

// List is one list of a user: its followings or its followers. The zero value is not usable; see
// [New].
type List struct {
	Peers *Set      // for whom is in the list
	Order *Timeline // for pages of it
}

// New makes a list of positions. They come newest first, or in any order; each user occurs once.
func New(dir *Directory, positions []storage.Position) List {
	return List{Peers: Build(dir, storage.Each(positions, func(p storage.Position) storage.UserID { return p.Peer })), Order: BuildTimeline(dir, positions)}
}

// Len is how many users are in the list.
func (n List) Len() int { return n.Peers.Len() }

// Insert returns the list with an edge added. A user who is in the list already must be removed
// first, with the position it had.
func (n List) Insert(at storage.Position) List {
	return List{Peers: n.Peers.Insert(at.Peer), Order: n.Order.Insert(at)}
}

// Remove returns the list without an edge, whose position the caller knows from its row. If the
// list has nobody at that position, it returns the list unchanged.
func (n List) Remove(at storage.Position) List {
	order := n.Order.Remove(at)
	if order == n.Order {
		return n
	}
	return List{Peers: n.Peers.Remove(at.Peer), Order: order}
}

// Bytes is the size in memory. O(chunks and blocks).
func (n List) Bytes() int { return n.Peers.Bytes() + n.Order.Bytes() }
