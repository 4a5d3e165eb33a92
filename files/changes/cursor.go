package changes

import (
	"encoding/base64"
	"encoding/json"
	"errors"
)

// ErrCursor: a text is no cursor of the store.
var ErrCursor = errors.New("that is no cursor of this store's changes")

// MaxCursor is how many bytes a cursor may have: a position of a log has some 150, in a set of many servers' transactions a few thousand.
const MaxCursor = 1 << 16

// cursor is a place in the changes of a store: a position in each of its logs, by their names. It tells nothing that its reader does
// not know, and another one can only be of use to who may read everything.
type cursor struct {
	Store string                     `json:"store"`
	Logs  map[string]json.RawMessage `json:"logs"`
}

// text is the cursor as clients have it.
func (c cursor) text() (string, error) {
	text, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// parse reads a cursor of a store. [ErrCursor].
func parse(text, store string) (c cursor, err error) {
	if len(text) > MaxCursor {
		return c, ErrCursor
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(plain, &c)
	}
	if err != nil || c.Store != store || c.Logs == nil {
		return cursor{}, ErrCursor
	}
	return c, nil
}
