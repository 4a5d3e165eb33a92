package rediscache

import (
	"encoding/binary"

	"kith/storage"
	"kith/storage/wire"
)

// kind is one sort of value of a user.
type kind[Q comparable, V any] struct {
	*storage.LookupKind[Q, V]
	name  string // in keys and metrics
	owner func(Q) storage.UserID
	keep  func(Q, V) stored
	// found is the answer to a query. It is not ok if the kept value cannot be read, or was read for a query that asked for
	// less.
	found func(Q, stored) (r storage.Result[V], ok bool)
}

// stored is what Redis keeps of a value.
type stored struct {
	version       int64 // of user_counts
	value, counts string
	nothing       bool // there is nothing in the store
}

func storedOf(reply []any) (k stored) {
	k.value, _ = reply[0].(string)
	k.counts, _ = reply[1].(string)
	k.version, _ = reply[2].(int64)
	return k
}

var users = kind[storage.UserID, storage.Profile]{
	LookupKind: storage.ProfileLookups, name: "user", owner: func(id storage.UserID) storage.UserID { return id },
	keep: func(_ storage.UserID, p storage.Profile) stored {
		return stored{p.Counts.Version, string(wire.AppendProfile(nil, p)), string(wire.AppendCounts(nil, p.Counts)), !p.Exists && !p.Counted}
	},
	found: func(id storage.UserID, k stored) (r storage.Result[storage.Profile], ok bool) {
		p, err := wire.ParseProfile(id, k.value, k.counts, k.version)
		return storage.Result[storage.Profile]{Value: p, Found: p.Exists || p.Counted}, err == nil
	},
}

// lists are those of one side. Of a list is kept: 1 if it is only known to be longer than …, otherwise 0; … so much; since when it has
// tombstones; and the edges.
func lists(side storage.Side) kind[storage.ListQuery, storage.List] {
	return kind[storage.ListQuery, storage.List]{
		LookupKind: storage.SnapshotLookups[side], name: side.String(), owner: func(q storage.ListQuery) storage.UserID { return q.Owner },
		keep: func(q storage.ListQuery, l storage.List) stored {
			to := []byte{0}
			if l.Long {
				to[0] = 1
			}
			to = binary.AppendUvarint(binary.AppendUvarint(to, uint64(q.Longest)), uint64(q.EndedSince))
			for _, e := range l.Edges {
				to = wire.AppendEdge(to, e)
			}
			return stored{version: l.Version, value: string(to), nothing: l.Version == 0 && len(l.Edges) == 0}
		},
		found: func(q storage.ListQuery, k stored) (r storage.Result[storage.List], ok bool) {
			d, follows := wire.NewDecoder(k.value), 0
			l := storage.List{Version: k.version, Long: d.Byte() == 1}
			longest, ended := int(d.Uvarint()), storage.Micros(d.Uvarint())
			for d.More() {
				e := d.Edge()
				if !e.Type.HasEnded() || e.UpdateTime >= q.EndedSince {
					l.Edges = append(l.Edges, e)
				}
				if e.Type == storage.Following {
					follows++
				}
			}
			ok = d.End() == nil && (l.Long && q.Longest <= longest || !l.Long && q.EndedSince >= ended)
			if follows > q.Longest {
				l.Long, l.Edges = true, nil
			}
			return storage.Result[storage.List]{Value: l, Found: true}, ok
		},
	}
}
