package baseline

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

func (h *handler) user(id int64) ([]byte, error) {
	var name sql.RawBytes
	var following, followers int64
	b, n, err := appendRows(append(make([]byte, 0, 160), `{"data":{"user":`...), 1, []any{&name, &following, &followers}, func(b []byte) []byte {
		b = appendNode(b, id, name)
		b = appendNumber(b[:len(b)-1], `,"followingCount":`, following) // it opens the node again
		return append(appendNumber(b, `,"followerCount":`, followers), '}')
	}, h.read[sqlUser], id)
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	return append(b, `}}`...), err
}

func (h *handler) node(id int64) ([]byte, error) {
	var handle, name string
	var created int64
	if err := h.read[sqlNode].QueryRow(id).Scan(&handle, &name, &created); err != nil {
		return nil, err
	}
	b := appendPerson(append(make([]byte, 0, 160), `{"data":{"user":`...), id, []byte(handle), []byte(name))
	return append(appendTime(append(b, `,"createdAt":"`...), created), `"}}}`...), nil
}

func (h *handler) count(id int64) ([]byte, error) {
	var following int64
	if err := h.read[sqlCount].QueryRow(id).Scan(&following); err != nil {
		return nil, err
	}
	b := appendNumber(append(make([]byte, 0, 80), `{"data":{"user":`...), `{"id":"`, id)
	return append(appendNumber(b, `","followingCount":`, following), `}}}`...), nil
}

func (h *handler) followings(id int64) ([]byte, error) {
	var peer, at int64
	var name sql.RawBytes
	b := append(make([]byte, 0, 2048), `{"data":{"user":{"followings":{"edges":[`...)
	b, _, err := appendRows(b, pageSize, []any{&peer, &name, &at}, func(b []byte) []byte {
		b = appendTime(append(b, `{"followedAt":"`...), at)
		return append(appendNode(append(b, `","node":`...), peer, name), '}')
	}, h.read[sqlFollowings], id)
	return append(b, `],"complete":true}}}}`...), err
}

func (h *handler) suggestions(id int64) ([]byte, error) {
	var peer, shared int64
	var name sql.RawBytes
	b := append(make([]byte, 0, 2048), `{"data":{"user":{"followSuggestions":{"edges":[`...)
	b, _, err := appendRows(b, pageSize, []any{&peer, &name, &shared}, func(b []byte) []byte {
		b = append(appendNumber(b, `{"sharedCount":`, shared), `,"node":`...)
		return append(appendNode(b, peer, name), '}')
	}, h.read[sqlSuggestions], id, id, id)
	return append(b, `],"complete":true}}}}`...), err
}

func (h *handler) relationships(from int64, to []id) ([]byte, error) {
	statement, room := sqlAllRelations, othersAsked
	if len(to) <= fewAsked {
		statement, room = sqlFewRelations, fewAsked
	}
	if len(to) > room {
		return nil, fmt.Errorf("%d others are asked about, more than %d", len(to), room)
	}
	args := make([]any, 0, 2*(room+1))
	for range 2 {
		args = append(args, from)
		for _, other := range to {
			args = append(args, int64(other))
		}
		for range room - len(to) {
			args = append(args, int64(0)) // nobody has this id
		}
	}
	directions := make(map[id]int, len(to))
	err := each(h.read[statement], args, func(rows *sql.Rows) error {
		var direction int
		var other id
		err := rows.Scan(&direction, &other)
		directions[other] |= direction
		return err
	})
	b := append(make([]byte, 0, 4096), `{"data":{"relationships":[`...)
	for i, other := range to {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(appendNumber(b, `{"id":"rel_`, from), `_`, int64(other))
		b = strconv.AppendBool(append(b, `","following":`...), directions[other]&1 != 0)
		b = append(strconv.AppendBool(append(b, `,"followedBy":`...), directions[other]&2 != 0), '}')
	}
	return append(b, `]}}`...), err
}

func (h *handler) common(of sharedText, one, other int64) ([]byte, error) {
	first, total, err := h.merge(of, one, other)
	if errors.Is(err, errLong) {
		first, total, err = h.intersect(of, one, other)
	}
	if err != nil {
		return nil, err
	}
	b := append(append(make([]byte, 0, 1024), `{"data":{"user":{"`...), of.field...)
	b = append(appendNumber(b, `":{"totalCount":`, int64(total)), `,"nodes":[`...)
	if total > 0 {
		for len(first) < pageSize {
			first = append(first, int64(0)) // nobody has this id
		}
		var peer int64
		var name sql.RawBytes
		b, _, err = appendRows(b, pageSize, []any{&peer, &name}, func(b []byte) []byte { return appendNode(b, peer, name) }, h.read[sqlTwentyNames], first...)
	}
	return append(b, `],"complete":true}}}}`...), err
}

var errLong = fmt.Errorf("more than %d rows", mergedHere)

// merge fetches both lists and walks along them.
func (h *handler) merge(of sharedText, one, other int64) (first []any, total int, err error) {
	ones, others := make([]int64, 0, 128), make([]int64, 0, 128)
	err = each(h.read[of.both], []any{one, other}, func(rows *sql.Rows) error {
		var owner, peer int64
		err := rows.Scan(&owner, &peer)
		if owner == one {
			ones = append(ones, peer)
		} else {
			others = append(others, peer)
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if len(ones)+len(others) > mergedHere {
		return nil, 0, errLong
	}
	for i, j := 0, 0; i < len(ones) && j < len(others); {
		switch {
		case ones[i] < others[j]:
			i++
		case ones[i] > others[j]:
			j++
		default:
			if total++; total <= pageSize {
				first = append(first, ones[i])
			}
			i, j = i+1, j+1
		}
	}
	return first, total, nil
}

// intersect leaves the work to the database.
func (h *handler) intersect(of sharedText, one, other int64) (first []any, total int, err error) {
	if err := h.read[of.count].QueryRow(one, other).Scan(&total); err != nil {
		return nil, 0, err
	}
	err = each(h.read[of.page], []any{one, other}, func(rows *sql.Rows) error {
		var peer int64
		err := rows.Scan(&peer)
		first = append(first, peer)
		return err
	})
	return first, total, err
}

func appendNode(b []byte, id int64, name []byte) []byte {
	b = append(appendNumber(b, `{"id":"`, id), `","name":`...)
	return append(appendText(b, name), '}')
}

func appendTime(b []byte, micros int64) []byte {
	return time.UnixMicro(micros).UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z07:00")
}

func appendChanged(field string, changed bool) []byte {
	b := append(append(make([]byte, 0, 64), `{"data":{"`...), field...)
	return append(strconv.AppendBool(append(b, `":{"changed":`...), changed), `}}}`...)
}

func appendText(b, text []byte) []byte {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(string(text)) // a string always marshals
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}
