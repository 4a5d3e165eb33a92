package replica

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Origin is where transactions are numbered: a domain of MariaDB, or a source of MySQL, perhaps with a tag.
type Origin struct {
	Domain uint32
	Source uuid.UUID // zero on MariaDB
	Tag    string
}

// A GTID names one transaction. It is comparable.
type GTID struct {
	Origin
	Server uint32 // MariaDB: which wrote it
	Number uint64 // from 1
}

func (g GTID) String() string {
	switch {
	case g.Source == uuid.Nil:
		return fmt.Sprintf("%d-%d-%d", g.Domain, g.Server, g.Number)
	case g.Tag == "":
		return fmt.Sprintf("%s:%d", g.Source, g.Number)
	}
	return fmt.Sprintf("%s:%s:%d", g.Source, g.Tag, g.Number)
}

// ParseGTID reads what String writes.
func ParseGTID(text string) (GTID, error) {
	set, err := ParseSet(text)
	if err == nil && len(set) == 1 {
		for origin, list := range set {
			if g := (GTID{origin, list[0].Server, list[0].Last}); len(list) == 1 && g.String() == text {
				return g, nil
			}
		}
	}
	return GTID{}, fmt.Errorf("%q is no GTID, such as 0-1-270 of MariaDB", text)
}

// A Set is a set of transactions: for each origin the numbers that are in it, as ranges that neither touch nor overlap, in order. Of
// MariaDB, which names the last transaction of each domain, it is one range from 1 on.
type Set map[Origin][]Range

// A Range is numbers of transactions, its bounds among them.
type Range struct {
	First, Last uint64
	Server      uint32 // MariaDB: which wrote the last
}

var (
	mariaGTID = regexp.MustCompile(`^(\d+)-(\d+)-(\d+)$`)
	mysqlTag  = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)
	numbers   = regexp.MustCompile(`^(\d+)(?:-(\d+))?$`)
)

// ParseSet reads a set in the form of either server: "0-1-270,1-1-5", or "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7:tag:1-3".
func ParseSet(text string) (Set, error) {
	s := Set{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if err := s.parse(part); err != nil && text != "" {
			return nil, fmt.Errorf("no set of GTIDs: %q: %w", part, err)
		}
	}
	return s, nil
}

func (s Set) parse(part string) error {
	if m := mariaGTID.FindStringSubmatch(part); m != nil {
		domain, err1 := strconv.ParseUint(m[1], 10, 32)
		server, err2 := strconv.ParseUint(m[2], 10, 32)
		number, err3 := strconv.ParseUint(m[3], 10, 64)
		s.Add(GTID{Origin{Domain: uint32(domain)}, uint32(server), number})
		return cmp.Or(err1, err2, err3)
	}
	source, rest, _ := strings.Cut(part, ":")
	o, err := Origin{}, error(nil)
	if o.Source, err = uuid.Parse(source); err != nil {
		return err
	}
	for field := range strings.SplitSeq(rest, ":") {
		if tag := strings.ToLower(strings.TrimSpace(field)); mysqlTag.MatchString(tag) {
			o.Tag = tag
			continue
		}
		m := numbers.FindStringSubmatch(strings.TrimSpace(field))
		if m == nil {
			return fmt.Errorf("%q is no range", field)
		}
		first, err1 := strconv.ParseInt(m[1], 10, 64)
		last, err2 := strconv.ParseInt(cmp.Or(m[2], m[1]), 10, 64)
		if err1 != nil || err2 != nil || first < 1 || first > last {
			return fmt.Errorf("%q is no range", field)
		}
		s.insert(o, Range{First: uint64(first), Last: uint64(last)})
	}
	if len(s[o]) == 0 {
		return errors.New("it has no numbers")
	}
	return nil
}

// Add adds a transaction: of MariaDB, with all before it in its domain.
func (s Set) Add(g GTID) {
	if g.Source == uuid.Nil {
		s[g.Origin] = []Range{{First: 1, Last: g.Number, Server: g.Server}}
		return
	}
	s.insert(g.Origin, Range{First: g.Number, Last: g.Number})
}

func (s Set) insert(o Origin, r Range) {
	list := s[o]
	at, _ := slices.BinarySearchFunc(list, r.First, func(have Range, first uint64) int { return cmp.Compare(have.Last+1, first) })
	end := at // the ranges from at to here become one with r
	for ; end < len(list) && list[end].First <= r.Last+1; end++ {
		r.First, r.Last = min(r.First, list[end].First), max(r.Last, list[end].Last)
	}
	s[o] = slices.Replace(list, at, end, r)
}

// Contains reports whether all transactions of another set are in this one.
func (s Set) Contains(other Set) bool {
	for o, list := range other {
		have := s[o]
		for _, r := range list {
			at, _ := slices.BinarySearchFunc(have, r.Last, func(have Range, last uint64) int { return cmp.Compare(have.Last, last) })
			if at == len(have) || have[at].First > r.First {
				return false
			}
		}
	}
	return true
}

// Equal reports whether both are the same set.
func (s Set) Equal(other Set) bool {
	return maps.EqualFunc(s, other, slices.Equal)
}

// Clone returns a copy.
func (s Set) Clone() Set {
	c := make(Set, len(s))
	for o, list := range s {
		c[o] = slices.Clone(list)
	}
	return c
}

// origins are sorted.
func (s Set) origins() []Origin {
	return slices.SortedFunc(maps.Keys(s), func(a, b Origin) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), bytes.Compare(a.Source[:], b.Source[:]), cmp.Compare(a.Tag, b.Tag))
	})
}

// String is the set in its server's form.
func (s Set) String() string {
	var b strings.Builder
	last := uuid.Nil
	for _, o := range s.origins() {
		if o.Source == uuid.Nil || o.Source != last {
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			if last = o.Source; last != uuid.Nil {
				b.WriteString(o.Source.String())
			}
		}
		if o.Tag != "" {
			b.WriteString(":" + o.Tag)
		}
		for _, r := range s[o] {
			switch {
			case o.Source == uuid.Nil:
				fmt.Fprint(&b, GTID{o, r.Server, r.Last})
			case r.First == r.Last:
				fmt.Fprintf(&b, ":%d", r.First)
			default:
				fmt.Fprintf(&b, ":%d-%d", r.First, r.Last)
			}
		}
	}
	return b.String()
}

// encode is the set as MySQL reads it (page_protocol_com_binlog_dump_gtid): the number of origins, and for each its ranges. If there are tags,
// the first and the last byte of the number are 1 (decode_nsids_format in MySQL's rpl_gtid_set.cc).
func (s Set) encode() []byte {
	le, n := binary.LittleEndian, uint64(len(s))
	tagged := slices.ContainsFunc(s.origins(), func(o Origin) bool { return o.Tag != "" })
	if tagged {
		n = n<<8 | 1 | 1<<56
	}
	b := le.AppendUint64(nil, n)
	for _, o := range s.origins() {
		b = append(b, o.Source[:]...)
		if tagged {
			b = append(append(b, byte(len(o.Tag)<<1)), o.Tag...)
		}
		b = le.AppendUint64(b, uint64(len(s[o])))
		for _, r := range s[o] {
			b = le.AppendUint64(le.AppendUint64(b, r.First), r.Last+1)
		}
	}
	return b
}
