package resolvers

import (
	"strconv"
	"strings"

	"kith/graph/apierr"
	"kith/storage"
)

// Bounds on the lists of ids that one field takes.
const (
	maxIDs   = 500
	maxPairs = 2000
)

// parseUserID takes canonical decimal text only: MySQL would take '10abc' for 10.
func parseUserID(text string) (storage.UserID, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || text[0] == '+' || text[0] == '0' {
		return 0, apierr.BadInput("%q is not a user's id: it is a decimal number from 1 to 9223372036854775807", abridged(text))
	}
	return storage.UserID(n), nil
}

func parseUserIDs(texts []string, most int) ([]storage.UserID, error) {
	if err := checkLength(len(texts), most); err != nil {
		return nil, err
	}
	ids := make([]storage.UserID, len(texts))
	for i, text := range texts {
		id, err := parseUserID(text)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

func checkLength(n, most int) error {
	if n > most {
		return apierr.BadInput("%d ids are given, %d is the most", n, most)
	}
	return nil
}

// The prefixes of ids of types that are about two users.
const (
	relationshipPrefix = "rel_"
	requestPrefix      = "req_"
)

// nodeID is a parsed id of any type of Node.
type nodeID struct {
	user         storage.UserID // 0: it is not a user's
	relationship storage.Pair
	request      storage.Pair
}

func parseNodeID(text string) (nodeID, error) {
	var id nodeID
	var err error
	if rest, ok := strings.CutPrefix(text, relationshipPrefix); ok {
		id.relationship, err = parsePair(rest)
	} else if rest, ok := strings.CutPrefix(text, requestPrefix); ok {
		id.request, err = parsePair(rest)
	} else {
		id.user, err = parseUserID(text)
	}
	if err != nil {
		return nodeID{}, apierr.BadInput("%q is not an id", abridged(text))
	}
	return id, nil
}

// parsePair takes two ids with a line between them.
func parsePair(text string) (storage.Pair, error) {
	from, to, _ := strings.Cut(text, "_")
	a, err := parseUserID(from)
	if err != nil {
		return storage.Pair{}, err
	}
	b, err := parseUserID(to)
	return storage.Pair{From: a, To: b}, err
}

// pairsOf is the grid of from and to, row by row.
func pairsOf(from, to []string) ([]storage.Pair, error) {
	if n := len(from) * len(to); n > maxPairs {
		return nil, apierr.BadInput("%d pairs are asked for, %d is the most", n, maxPairs)
	}
	a, err := parseUserIDs(from, maxPairs)
	if err != nil {
		return nil, err
	}
	b, err := parseUserIDs(to, maxPairs)
	if err != nil {
		return nil, err
	}
	pairs := make([]storage.Pair, 0, len(a)*len(b))
	for _, f := range a {
		for _, t := range b {
			pairs = append(pairs, storage.Pair{From: f, To: t})
		}
	}
	return pairs, nil
}

// abridged keeps an error from growing with what a client sends.
func abridged(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
