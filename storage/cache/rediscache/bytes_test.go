package rediscache

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"kith/storage"
	"kith/storage/wire"
)

func drawProfile(t *rapid.T, id storage.UserID) storage.Profile {
	p := storage.Profile{Exists: rapid.Bool().Draw(t, "exists"), Counted: rapid.Bool().Draw(t, "counted")}
	if p.Exists {
		p.User = storage.User{
			ID: id, Handle: rapid.String().Draw(t, "handle"), Name: rapid.String().Draw(t, "name"),
			Bio: rapid.String().Draw(t, "bio"), AvatarURL: rapid.String().Draw(t, "avatar"),
			CreatedAt: storage.Micros(rapid.Int64().Draw(t, "created")), UpdatedAt: storage.Micros(rapid.Int64().Draw(t, "updated")),
			FollowingsVisibility: storage.Visibility(rapid.IntRange(0, 2).Draw(t, "followings")),
			FollowersVisibility:  storage.Visibility(rapid.IntRange(0, 2).Draw(t, "followers")),
			Undiscoverable:       rapid.Bool().Draw(t, "undiscoverable"),
			Locked:               rapid.Bool().Draw(t, "locked"),
		}
	}
	if p.Counted {
		p.Counts = storage.Counts{
			Following: rapid.Int64().Draw(t, "following"), Follower: rapid.Int64().Draw(t, "follower"),
			Friend: rapid.Int64().Draw(t, "friend"), Version: rapid.Int64().Draw(t, "version"),
		}
	}
	return p
}

func drawList(t *rapid.T, side storage.Side, owner storage.UserID) storage.List {
	l := storage.List{Version: rapid.Int64().Draw(t, "version"), Long: rapid.Bool().Draw(t, "long")}
	if l.Long {
		return l
	}
	l.Edges = []storage.Edge{}
	n := rapid.SampledFrom([]int{0, 1, 2, 127, 2048, 2049, 5000}).Draw(t, "n")
	step := rapid.SampledFrom([]storage.UserID{1, 1 << 24, 1 << 40}).Draw(t, "step")
	peer := storage.UserID(rapid.Int64Range(1, 1<<50).Draw(t, "first"))
	for range n {
		pair := side.Pair(owner, peer)
		l.Edges = append(l.Edges, storage.Edge{
			From: pair.From, To: pair.To,
			Type:       storage.EdgeType(rapid.SampledFrom([]int{1, 1, 1, 1, 1, 0, 2}).Draw(t, "type")),
			UpdateTime: storage.Micros(rapid.Int64().Draw(t, "time")),
		})
		peer += step * storage.UserID(rapid.IntRange(1, 3).Draw(t, "distance"))
	}
	return l
}

func TestValuesAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := storage.UserID(rapid.Int64Range(1, math.MaxInt64).Draw(t, "id"))
		p := drawProfile(t, id)
		version := storage.UserID(p.Counts.Version).String()
		got, err := parseUser(id, string(wire.AppendProfile(nil, p)), version, string(wire.AppendCounts(nil, p.Counts)))
		if err != nil || got != p {
			t.Fatalf("%+v is read back as %+v: %v", p, got, err)
		}
		side := storage.Side(rapid.IntRange(0, 1).Draw(t, "side"))
		l := drawList(t, side, id)
		back, err := parseList(side, id, string(listBytes(side, l, whole(id))))
		if err != nil || !reflect.DeepEqual(back, l) {
			t.Fatalf("%d edges are read back as %d others: %v", len(l.Edges), len(back.Edges), err)
		}
	})
}

// Any bytes in Redis decode to a value or an error, and never to a panic. A list with one changed byte is
// an error.
func TestDamagedValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawList(t, storage.Forward, 7)
		data := listBytes(storage.Forward, l, whole(7))
		if _, err := parseList(storage.Forward, 7, string(data[:rapid.IntRange(0, len(data)-1).Draw(t, "cut")])); err == nil {
			t.Fatal("a list that is cut off is read")
		}
		if at := rapid.IntRange(0, len(data)-1).Draw(t, "at"); !l.Long {
			data[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
			if damaged, err := parseList(storage.Forward, 7, string(data)); err == nil && !damaged.Long {
				t.Fatalf("byte %d is another, and it is read", at)
			}
		}
		profile := wire.AppendProfile(nil, drawProfile(t, 7))
		profile[rapid.IntRange(0, len(profile)-1).Draw(t, "where")] ^= 0x81
		_, _ = parseUser(7, string(profile), "1", "\x02\x02\x02")
		_, _ = parseEdges(storage.Forward, 7, rapid.SliceOf(rapid.Byte()).Draw(t, "anything"))
	})
}
