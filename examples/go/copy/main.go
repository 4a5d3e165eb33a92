// Command copy keeps a copy of all edges, and proves it. It reads what kith changes prints:
//
//	kith changes --after CURSOR --kinds follows,requests,favorites,digests --until-now | copy
//
// A copy of your own begins with the files of an export, and writes the cursor down in the transaction that writes its rows.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	differ, err := run(os.Stdin, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case differ > 0:
		os.Exit(1)
	}
}

// edge is as a digest takes it; its kind is 0 once it has ended.
type edge struct{ from, to, item, kind, at uint64 }

// numbers are the types of edges in a digest.
var numbers = map[string]uint64{
	"following": 1, "blocking": 2, "follow_request": 3, "declined_follow_request": 4,
	"friend_request": 1, "accepted_request": 2, "declined_request": 3, "cancelled_request": 4, "removed_request": 5,
	"true": 1, "mention": 2,
}

// mix is what an edge adds to a digest, by exclusive or.
func (e edge) mix() uint64 {
	a := (e.from ^ e.to<<21 ^ e.item<<32 ^ e.item>>32 ^ e.at ^ 7640891576956012809) % 4093082899
	b := (e.to ^ e.from<<13 ^ e.item ^ e.at<<7 ^ e.kind<<50) % 3367900313
	return a * b
}

func bucketOf(user uint64) uint64 {
	return uint64(crc32.ChecksumIEEE([]byte(strconv.FormatUint(user, 10))) % 1024)
}

// edges are a copy, by the buckets of those whose edges they are: of each kind and subject.
type edges [1024]map[string]edge

// take takes one event. Of digests it returns the users whose edges differ: they are to be read again.
func (c *edges) take(kind, subject string, data map[string]string) (differ []string) {
	number := func(text string) (n uint64) {
		n, _ = strconv.ParseUint(text, 10, 64)
		return n
	}
	if kind == "digests" {
		digests := make(map[string]uint64) // what differs between here and there
		for key, e := range c[number(data["bucket"])] {
			if e.kind != 0 && strings.HasPrefix(key, data["kind"]) && number(data["after"]) < e.from && e.from <= number(data["up_to"]) {
				digests[strconv.FormatUint(e.from, 10)] ^= e.mix()
			}
		}
		for _, there := range strings.Fields(data["users"]) {
			user, digest, _ := strings.Cut(there, ":")
			n, _ := strconv.ParseUint(digest, 16, 64)
			digests[user] ^= n
		}
		maps.DeleteFunc(digests, func(_ string, difference uint64) bool { return difference == 0 })
		return slices.Sorted(maps.Keys(digests))
	}
	ids := append(strings.Split(subject, "/"), "0") // a follow has no item
	e := edge{from: number(ids[0]), to: number(ids[1]), item: number(ids[2]), kind: numbers[data["relation"]+data["favorited"]]}
	seconds, micros, _ := strings.Cut(data["at"], ".")
	e.at = number(seconds)*1e6 + number((micros + "000000")[:6])
	bucket := &c[bucketOf(e.from)]
	if *bucket == nil {
		*bucket = make(map[string]edge)
	}
	// One that has ended stays, with its time: the log of a shard that its user has left may be behind, and tell what was before. A damaged
	// row has no time, and is no edge.
	if e.at == 0 || e.at >= (*bucket)[kind+subject].at {
		(*bucket)[kind+subject] = e
	}
	return nil
}

// run prints each difference, and at the end how many digests there were.
func run(from io.Reader, to io.Writer) (differ int, err error) {
	var c edges
	out, lines, digests := json.NewEncoder(to), json.NewDecoder(from), 0
	for {
		var e struct {
			Type, Subject string
			Data          map[string]string
		}
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return differ, out.Encode(map[string]int{"digests": digests, "differ": differ})
		} else if err != nil {
			return differ, err
		}
		switch kind := strings.TrimPrefix(e.Type, "kith."); kind {
		case "digests":
			digests++
			fallthrough
		case "follows", "requests", "favorites":
			if users := c.take(kind, e.Subject, e.Data); len(users) > 0 {
				differ++
				if err := out.Encode(map[string]any{"differs": e.Subject, "users": users}); err != nil {
					return differ, err
				}
			}
		}
	}
}
