package sqlstore

import (
	"slices"
	"testing"

	"kith/storage"
	"kith/storage/idset"
)

// Parts may come in any order. Those that do not fit are refused, also where only their number is right.
func TestPackedPeersFit(t *testing.T) {
	for name, test := range map[string]struct {
		parts packedPeers
		want  []storage.UserID // nil: they do not fit
	}{
		"nothing":                {packedPeers{}, []storage.UserID{}},
		"chunks":                 {packedPeers{count: 3, peers: []storage.UserID{1, 2, 9}}, []storage.UserID{1, 2, 9}},
		"chunks in disorder":     {packedPeers{count: 3, peers: []storage.UserID{9, 1, 2}}, []storage.UserID{1, 2, 9}},
		"a change":               {packedPeers{count: 2, peers: []storage.UserID{1, 2, 9}, changes: []peerChange{{2, false}}}, []storage.UserID{1, 9}},
		"changes in disorder":    {packedPeers{count: 4, peers: []storage.UserID{2, 4}, changes: []peerChange{{9, true}, {1, true}}}, []storage.UserID{1, 2, 4, 9}},
		"changes that are there": {packedPeers{count: 2, peers: []storage.UserID{1, 2}, changes: []peerChange{{2, true}, {5, false}}}, []storage.UserID{1, 2}},
		"changes alone":          {packedPeers{count: 1, changes: []peerChange{{5, true}}}, []storage.UserID{5}},
		"too many":               {packedPeers{count: 2, peers: []storage.UserID{1, 2, 9}}, nil},
		"too few":                {packedPeers{count: 4, peers: []storage.UserID{1, 2, 9}}, nil},
		"one twice":              {packedPeers{count: 3, peers: []storage.UserID{1, 1, 9}}, nil},
		"a broken chunk":         {packedPeers{count: 1, peers: []storage.UserID{1}, err: idset.ErrMalformed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.parts.list()
			if fits := test.want != nil; fits != (err == nil) || fits && !slices.Equal(got, test.want) {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
		})
	}
}
