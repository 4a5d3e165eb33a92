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
	rows, err := h.oneUser.Query(id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, sql.ErrNoRows
	}
	if err := rows.Scan(&name, &following, &followers); err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 160), `{"data":{"user":`...)
	b = appendNode(b, id, name)
	b = append(b[:len(b)-1], `,"followingCount":`...) // open the node again
	b = strconv.AppendInt(b, following, 10)
	b = append(b, `,"followerCount":`...)
	b = strconv.AppendInt(b, followers, 10)
	return append(b, `}}}`...), rows.Err()
}

func (h *handler) node(id int64) ([]byte, error) {
	var handle, name string
	var created int64
	if err := h.oneNode.QueryRow(id).Scan(&handle, &name, &created); err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 160), `{"data":{"user":{"id":"`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `","handle":`...)
	b = appendText(b, []byte(handle))
	b = append(b, `,"name":`...)
	b = appendText(b, []byte(name))
	b = append(b, `,"createdAt":"`...)
	b = appendTime(b, created)
	return append(b, `"}}}`...), nil
}

func (h *handler) count(id int64) ([]byte, error) {
	var following int64
	if err := h.oneCount.QueryRow(id).Scan(&following); err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 80), `{"data":{"user":{"id":"`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `","followingCount":`...)
	b = strconv.AppendInt(b, following, 10)
	return append(b, `}}}`...), nil
}

func (h *handler) followings(id int64) ([]byte, error) {
	rows, err := h.firstFollowings.Query(id)
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 2048), `{"data":{"user":{"followings":{"edges":[`...)
	b, err = eachNamed(b, rows, func(b []byte, id int64, name []byte, micros int64) []byte {
		b = append(b, `{"followedAt":"`...)
		b = appendTime(b, micros)
		b = append(b, `","node":`...)
		return append(appendNode(b, id, name), '}')
	})
	return append(b, `],"complete":true}}}}`...), err
}

func (h *handler) suggestions(id int64) ([]byte, error) {
	rows, err := h.suggested.Query(id, id, id)
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 2048), `{"data":{"user":{"followSuggestions":{"edges":[`...)
	b, err = eachNamed(b, rows, func(b []byte, id int64, name []byte, mutual int64) []byte {
		b = append(b, `{"sharedCount":`...)
		b = strconv.AppendInt(b, mutual, 10)
		b = append(b, `,"node":`...)
		return append(appendNode(b, id, name), '}')
	})
	return append(b, `],"complete":true}}}}`...), err
}

func (h *handler) relationships(from int64, to []id) ([]byte, error) {
	statement, room := h.relations, othersAsked
	if len(to) <= fewAsked {
		statement, room = h.fewRelations, fewAsked
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
	rows, err := statement.Query(args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	directions := make(map[id]int, len(to))
	for rows.Next() {
		var direction int
		var other id
		if err := rows.Scan(&direction, &other); err != nil {
			return nil, err
		}
		directions[other] |= direction
	}
	b := append(make([]byte, 0, 4096), `{"data":{"relationships":[`...)
	for i, other := range to {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":"rel_`...)
		b = strconv.AppendInt(b, from, 10)
		b = append(b, '_')
		b = strconv.AppendInt(b, int64(other), 10)
		b = append(b, `","following":`...)
		b = strconv.AppendBool(b, directions[other]&1 != 0)
		b = append(b, `,"followedBy":`...)
		b = strconv.AppendBool(b, directions[other]&2 != 0)
		b = append(b, '}')
	}
	return append(b, `]}}`...), rows.Err()
}

func (l *lists) common(one, other int64) ([]byte, error) {
	first, total, err := l.merge(one, other)
	if errors.Is(err, errLong) {
		first, total, err = l.intersect(one, other)
	}
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 1024), `{"data":{"user":{"`...)
	b = append(b, l.field...)
	b = append(b, `":{"totalCount":`...)
	b = strconv.AppendInt(b, int64(total), 10)
	b = append(b, `,"nodes":[`...)
	if total > 0 {
		for len(first) < pageSize {
			first = append(first, int64(0)) // nobody has this id
		}
		rows, err := l.names.Query(first...)
		if err != nil {
			return nil, err
		}
		if b, err = eachNamed(b, rows, nil); err != nil {
			return nil, err
		}
	}
	return append(b, `],"complete":true}}}}`...), nil
}

var errLong = fmt.Errorf("more than %d rows", mergedHere)

// merge fetches both lists and walks along them.
func (l *lists) merge(one, other int64) (first []any, total int, err error) {
	rows, err := l.both.Query(one, other)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	ones, others := make([]int64, 0, 128), make([]int64, 0, 128)
	for rows.Next() {
		var owner, peer int64
		if err := rows.Scan(&owner, &peer); err != nil {
			return nil, 0, err
		}
		if owner == one {
			ones = append(ones, peer)
		} else {
			others = append(others, peer)
		}
	}
	if err := rows.Err(); err != nil {
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
func (l *lists) intersect(one, other int64) (first []any, total int, err error) {
	if err := l.count.QueryRow(one, other).Scan(&total); err != nil {
		return nil, 0, err
	}
	rows, err := l.page.Query(one, other)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var peer int64
		if err := rows.Scan(&peer); err != nil {
			return nil, 0, err
		}
		first = append(first, peer)
	}
	return first, total, rows.Err()
}

// eachNamed appends one object for each row: id, name and, if wrap takes it, a
// number.
func eachNamed(b []byte, rows *sql.Rows, wrap func(b []byte, id int64, name []byte, number int64) []byte) ([]byte, error) {
	defer rows.Close()
	var id, number int64
	var name sql.RawBytes
	into := []any{&id, &name, &number}
	if wrap == nil {
		into = into[:2]
		wrap = func(b []byte, id int64, name []byte, _ int64) []byte { return appendNode(b, id, name) }
	}
	for first := true; rows.Next(); first = false {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		if !first {
			b = append(b, ',')
		}
		b = wrap(b, id, name, number)
	}
	return b, rows.Err()
}

func appendNode(b []byte, id int64, name []byte) []byte {
	b = append(b, `{"id":"`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `","name":`...)
	b = appendText(b, name)
	return append(b, '}')
}

func appendTime(b []byte, micros int64) []byte {
	return time.UnixMicro(micros).UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z07:00")
}

func appendChanged(field string, changed bool) []byte {
	b := append(make([]byte, 0, 64), `{"data":{"`...)
	b = append(b, field...)
	b = append(b, `":{"changed":`...)
	b = strconv.AppendBool(b, changed)
	return append(b, `}}}`...)
}

func appendText(b, text []byte) []byte {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(string(text)) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}
