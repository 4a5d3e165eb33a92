package changes

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
)

// ErrCursor: a text is no cursor of the store.
var ErrCursor = errors.New("that is no cursor of this store's changes")

const (
	// MaxCursor is how many bytes a cursor may have, so that an argument of a program and a message over a WebSocket hold it. A position of a
	// log has some 270, or 50 if the cursor is compressed; in a set of many servers' transactions a few thousand.
	MaxCursor = 120 << 10

	mostPlain  = 24 << 10 // bytes of JSON: a longer one is compressed, or the text would be more than the API takes (32 KiB)
	maxInflate = 1 << 20  // bytes of one that was
)

// cursor is a place in the changes of a store: a position in each of its logs, by their names. It tells nothing that its reader does
// not know, and another one can only be of use to who may read everything.
type cursor struct {
	Store string                     `json:"store"`
	Logs  map[string]json.RawMessage `json:"logs"`
}

// text is the cursor as clients have it.
func (c cursor) text() (string, error) {
	text, err := json.Marshal(c)
	if len(text) > mostPlain {
		var packed bytes.Buffer
		w := zlib.NewWriter(&packed)
		_, err = w.Write(text)
		err, text = cmp.Or(err, w.Close()), packed.Bytes()
	}
	return base64.RawURLEncoding.EncodeToString(text), err
}

// parse reads a cursor of a store. [ErrCursor].
func parse(text, store string) (c cursor, err error) {
	if len(text) > MaxCursor {
		return c, ErrCursor
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if packed, isPlain := zlib.NewReader(bytes.NewReader(plain)); err == nil && isPlain == nil {
		plain, err = io.ReadAll(io.LimitReader(packed, maxInflate))
	}
	if err == nil {
		err = json.Unmarshal(plain, &c)
	}
	if err != nil || c.Store != store || c.Logs == nil {
		return cursor{}, ErrCursor
	}
	return c, nil
}
