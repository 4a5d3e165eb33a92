package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
)

// Store is what was measured of a store, besides the questions that were put to it.
type Store struct {
	Engine string `json:"engine"`

	Imported        int     `json:"imported"`        // follows
	ImportPerSecond float64 `json:"importPerSecond"` // follows, both of their rows

	Inserted        int     `json:"inserted,omitempty"` // follows in random order, after the import
	InsertPerSecond float64 `json:"insertPerSecond,omitempty"`
	Tables          []Table `json:"tables,omitempty"`
	Packed          *Packed `json:"packed,omitempty"`

	Rest *Rest  `json:"rest,omitempty"`
	Hits []Hits `json:"hits,omitempty"`

	Drain *Drain `json:"drain,omitempty"`
	Move  *Move  `json:"move,omitempty"`
}

// Table is a table of all shards together, with its indexes.
type Table struct {
	Name     string `json:"name"`
	Imported int64  `json:"importedBytes"` // after the import
	Inserted int64  `json:"insertedBytes"` // after the inserts
}

// Packed are long lists in packed form.
type Packed struct {
	Lists   int   `json:"lists"`
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"` // of the chunks, without the rest of their rows
}

// Rest is what gateways that answer no requests use of a server.
type Rest struct {
	Gateways    int     `json:"gateways"`
	Connections int     `json:"connections"` // open after the questions, of all of them
	PerSecond   float64 `json:"statementsPerSecond"`
}

// Hits is how much a gateway had in memory when users were asked for by Zipf's law.
type Hits struct {
	CacheBytes int64   `json:"cacheBytes"` // --cache-bytes
	Question   string  `json:"question"`
	Shape      float64 `json:"zipf"`
	Share      float64 `json:"hitRate"` // of the keys that were asked for, 0 to 1
	PerSecond  float64 `json:"requestsPerSecond"`
	P50        float64 `json:"p50Ms"`
	P99        float64 `json:"p99Ms"`
	Entries    int     `json:"entries"` // users and lists that were in memory at the end
	Bytes      int64   `json:"bytes"`   // the bytes that they took
}

// Drain is how fast a backlog of follows was replicated to the other side.
type Drain struct {
	Follows   int     `json:"follows"`
	Written   float64 `json:"writtenPerSecond"` // one transaction each, by 16 writers, nobody replicating
	PerSecond float64 `json:"drainedPerSecond"`
}

// Move is a part of a store that went to another database, without pauses.
type Move struct {
	Rows      int64   `json:"rows"`
	PerSecond float64 `json:"rowsPerSecond"` // copied, compared, removed, each row counted once
	Waited    float64 `json:"writesWaitedMs"`
}

// rowsOf are the tables of follows, which have a row for each.
var rowsOf = map[string]bool{"following": true, "follower": true}

// writeStores writes what was measured of the stores of one engine, with a column for
// each size.
func (r *Report) writeStores(w io.Writer, engine string) {
	var sizes []*Size
	var stores []*Store
	for i := range r.Sizes {
		for j := range r.Sizes[i].Stores {
			if s := &r.Sizes[i].Stores[j]; s.Engine == engine {
				sizes, stores = append(sizes, &r.Sizes[i]), append(stores, s)
			}
		}
	}
	if len(stores) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### %s, the store, by size\n\n", title[engine])
	head := []string{""}
	for _, s := range sizes {
		head = append(head, s.title())
	}
	writeRow(w, head)
	fmt.Fprintln(w, "|---|"+strings.Repeat("---:|", len(stores)))
	line := func(name string, of func(*Store) string) {
		row, known := []string{name}, false
		for _, s := range stores {
			text := of(s)
			known = known || text != ""
			row = append(row, text)
		}
		if known {
			writeRow(w, row)
		}
	}
	line("import, follows a second", func(s *Store) string { return rate(s.ImportPerSecond) })
	line("follows inserted in random order after it", func(s *Store) string { return some(s.Inserted) })
	line("of these a second", func(s *Store) string { return rate(s.InsertPerSecond) })
	for _, name := range tableNames(stores) {
		line("`"+name+"`, MB, imported / after the inserts", func(s *Store) string {
			t := s.table(name)
			if t == nil {
				return ""
			}
			return number(float64(t.Imported)/1e6, 1) + " / " + number(float64(t.Inserted)/1e6, 1)
		})
		if !rowsOf[name] {
			continue
		}
		line("`"+name+"`, bytes a follow", func(s *Store) string {
			t := s.table(name)
			if t == nil || s.Imported == 0 {
				return ""
			}
			return number(float64(t.Imported)/float64(s.Imported), 0) + " / " + number(float64(t.Inserted)/float64(s.Imported+s.Inserted), 0)
		})
	}
	line("packed, bytes a follow", func(s *Store) string {
		if s.Packed == nil || s.Packed.Entries == 0 {
			return ""
		}
		return fmt.Sprintf("%s (%d lists, %s follows)", number(float64(s.Packed.Bytes)/float64(s.Packed.Entries), 1), s.Packed.Lists, comma(int(s.Packed.Entries)))
	})
	line("connections of gateways, after the questions", func(s *Store) string {
		if s.Rest == nil {
			return ""
		}
		return fmt.Sprintf("%s of %d", comma(s.Rest.Connections), s.Rest.Gateways)
	})
	line("statements a second that one gateway sends at rest", func(s *Store) string {
		if s.Rest == nil || s.Rest.Gateways == 0 {
			return ""
		}
		return number(s.Rest.PerSecond/float64(s.Rest.Gateways), 1)
	})
	line("backlog of follows written, a second", func(s *Store) string {
		if s.Drain == nil {
			return ""
		}
		return rate(s.Drain.Written)
	})
	line("and replicated, a second", func(s *Store) string {
		if s.Drain == nil {
			return ""
		}
		return rate(s.Drain.PerSecond)
	})
	line("rows moved to another database, a second", func(s *Store) string {
		if s.Move == nil {
			return ""
		}
		return rate(s.Move.PerSecond) + " (of " + comma(int(s.Move.Rows)) + ")"
	})
	writeHits(w, sizes, stores)
}

func writeHits(w io.Writer, sizes []*Size, stores []*Store) {
	begun := false
	for i, s := range stores {
		for _, h := range s.Hits {
			if !begun {
				begun = true
				fmt.Fprintln(w, "\nUsers asked for by Zipf's law:")
				fmt.Fprintln(w)
				writeRow(w, []string{"", "question", "Zipf", "`--cache-bytes`", "keys in memory", "entries there", "bytes an entry", "requests a second", "p50 / p99, ms"})
				fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|---:|---:|")
			}
			writeRow(w, []string{
				sizes[i].title(), h.Question, short(h.Shape, 2), humanize.IBytes(uint64(h.CacheBytes)), number(100*h.Share, 1) + " %",
				comma(h.Entries), some(int(h.Bytes) / max(1, h.Entries)), rate(h.PerSecond), number(h.P50, 2) + " / " + number(h.P99, 2),
			})
		}
	}
}

// title names a size.
func (s *Size) title() string {
	text := fmt.Sprintf("%s users, %s follows", comma(s.Users), comma(s.Edges))
	if s.Shards > 1 {
		text += fmt.Sprintf(", %d shards", s.Shards)
	}
	return text
}

// tableNames are the names of all tables, in the order of the first store that has them.
func tableNames(stores []*Store) (names []string) {
	seen := map[string]bool{}
	for _, s := range stores {
		for _, t := range s.Tables {
			if !seen[t.Name] {
				seen[t.Name] = true
				names = append(names, t.Name)
			}
		}
	}
	return names
}

func (s *Store) table(name string) *Table {
	for i := range s.Tables {
		if s.Tables[i].Name == name {
			return &s.Tables[i]
		}
	}
	return nil
}

func rate(perSecond float64) string { return some(int(perSecond + 0.5)) }

// some writes a number; 0 means that it was not measured.
func some(n int) string {
	if n == 0 {
		return ""
	}
	return comma(n)
}
