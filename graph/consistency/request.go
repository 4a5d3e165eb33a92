package consistency

import (
	"context"
	"sync"
)

// Request is the consistency state of one request: the token that it came
// with, its own writes, and whether anything in its answer is stale.
type Request struct {
	mu      sync.Mutex
	written Token
	stale   bool
}

type requestKey struct{}

// Attach gives a request its state.
func Attach(ctx context.Context) (context.Context, *Request) {
	r := &Request{}
	return context.WithValue(ctx, requestKey{}, r), r
}

// For returns the request's state; outside of a request, a state that is not used.
func For(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return &Request{}
}

// Wrote adds marks to the request's writes.
func (r *Request) Wrote(t Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written = append(r.written, t...)
}

// Stale notes that something in the answer may be older than a write.
func (r *Request) Stale() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale = true
}

// Result returns the marks of everything that was written, none if nothing was, and whether the
// answer is stale.
func (r *Request) Result() (written Token, stale bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written, r.stale
}
