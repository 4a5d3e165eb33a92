// Package logged keeps what is logged in a test.
package logged

import (
	"bytes"
	"sync"
)

// Text is a log that can be read while it is written.
type Text struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
