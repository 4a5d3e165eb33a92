package rediscache

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/cache/idset"
)

// The scripts of a version of the program whose values have other forms.
var (
	otherNames   = strings.NewReplacer("'p'", "'p2'", "'c'", "'c2'", "== 'V'", "== 'W'")
	otherScripts = map[*redis.Script]*redis.Script{userGet: otherForm("userget"), userFill: otherForm("userfill"), listGet: otherForm("listget"), listFill: listFill}
)

func otherForm(name string) *redis.Script {
	text, _ := lua.ReadFile("lua/" + name + ".lua")
	scripts = append(scripts, otherNames.Replace(string(text)))
	return redis.NewScript(scripts[len(scripts)-1])
}

type otherUsers struct{ users }

func (k otherUsers) get(id storage.UserID) (*redis.Script, []any) {
	script, args := k.users.get(id)
	return otherScripts[script], args
}

func (k otherUsers) fill(id storage.UserID, p storage.Profile) (*redis.Script, int64, []any) {
	script, version, args := k.users.fill(id, p)
	return otherScripts[script], version, args
}

type otherLists struct{ lists }

func (k otherLists) get(q storage.ListQuery) (*redis.Script, []any) {
	script, args := k.lists.get(q)
	return otherScripts[script], args
}

func (k otherLists) parse(reply any, q storage.ListQuery) (storage.Result[storage.List], error) {
	if reply.(string)[0] != 'W' {
		return storage.Result[storage.List]{}, errMalformed
	}
	return k.lists.parse(begun('V', []byte(reply.(string))), q)
}

func (k otherLists) fill(q storage.ListQuery, l storage.List) (*redis.Script, int64, []any) {
	script, version, args := k.lists.fill(q, l)
	return otherScripts[script], version, []any{begun('W', args[0].([]byte))}
}

// begun is a list with another first byte.
func begun(first byte, list []byte) string {
	body, _ := idset.Unseal(list)
	return string(idset.Seal(append([]byte{first}, body[1:]...)))
}

// Gateways of two versions, with values in different forms, see each other's changes at once, and keep values in turn.
func TestGatewaysWhoseValuesHaveDifferentForms(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	_, a, b := pair(t, s)
	read := func(c *Cache, other bool) (follows int64) {
		t.Helper()
		userKind, listKind := kind[storage.UserID, storage.Profile](users{}), kind[storage.ListQuery, storage.List](lists{storage.Inverse})
		if other {
			userKind, listKind = otherUsers{}, otherLists{lists{storage.Inverse}}
		}
		p := look(t.Context(), c, userKind, []storage.UserID{1})[0]
		l := look(t.Context(), c, listKind, []storage.ListQuery{{Owner: 2, Longest: 1 << 40}})[0]
		if p.Err != nil || l.Err != nil {
			t.Fatal(p.Err, l.Err)
		}
		for _, e := range l.Value.Edges {
			if e.Type == storage.Following {
				follows++
			}
		}
		if follows != p.Value.Counts.Following {
			t.Errorf("%d follows in the list, %d counted", follows, p.Value.Counts.Following)
		}
		c.idle(t)
		return follows
	}
	gateways := []*Cache{a, b}
	var want int64
	for writer := range 2 {
		for _, filled := range []string{"by the reader last", "by the writer last", "by the writer before it reports"} {
			reader, otherWrites := gateways[1-writer], writer == 1
			order := []func() int64{func() int64 { return read(gateways[writer], otherWrites) }, func() int64 { return read(reader, !otherWrites) }}
			if filled == "by the writer last" {
				order[0], order[1] = order[1], order[0]
			}
			for _, read := range order {
				if got := read(); got != want {
					t.Errorf("writer %d, filled %s: %d follows before the write, want %d", writer, filled, got, want)
				}
			}
			before := s.calls()
			if order[1](); s.calls() != before {
				t.Errorf("writer %d, filled %s: nothing was kept", writer, filled)
			}
			if want = 1 - want; want == 1 {
				s.write(t, 1, 2, storage.Following)
			} else {
				s.write(t, 1, 2, storage.None)
			}
			if filled == "by the writer before it reports" {
				read(gateways[writer], otherWrites)
			}
			gateways[writer].Changed(t.Context(), s.both(1, 2))
			for range 2 {
				if got := read(reader, !otherWrites); got != want {
					t.Errorf("writer %d, filled %s: the other gateway sees %d follows, want %d", writer, filled, got, want)
				}
			}
		}
	}
}
