// The session of a user, and what it has written.
package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Session is who is signed in, and what they have written. It is a transport for HTTP, for any number of goroutines.
type Session struct {
	SignIn func(context.Context) (string, error) // gets a new token

	mu      sync.Mutex
	token   string
	written []string
}

// RoundTrip asks with the session's token. If Kith refuses it, RoundTrip asks once more with a new one.
func (s *Session) RoundTrip(r *http.Request) (*http.Response, error) {
	token, written := s.state()
	response, err := s.send(r, token, written)
	if err == nil && response.StatusCode == http.StatusUnauthorized && (r.Body == nil || r.Body == http.NoBody || r.GetBody != nil) {
		response.Body.Close()
		if token, err = s.Renew(r.Context(), token); err == nil {
			response, err = s.send(r, token, written)
		}
	}
	if err != nil {
		return nil, err
	}
	s.wrote(response.Header.Get("Kith-Consistency"))
	return response, nil
}

func (s *Session) send(r *http.Request, token, written string) (*http.Response, error) {
	again := r.Clone(r.Context()) // a transport must not change the request
	if r.GetBody != nil {
		var err error
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	if token != "" {
		again.Header.Set("Authorization", "Bearer "+token)
	}
	if written != "" {
		again.Header.Set("Kith-Consistency", written)
	}
	return http.DefaultTransport.RoundTrip(again)
}

// Renew replaces a token that was refused, unless that has happened meanwhile.
func (s *Session) Renew(ctx context.Context, refused string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != refused {
		return s.token, nil
	}
	fresh, err := s.SignIn(ctx)
	if err == nil { // otherwise the old token is refused again, and this is tried again
		s.token = fresh
	}
	return fresh, err
}

func (s *Session) state() (token, written string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, strings.Join(s.written, ",")
}

// maxWritten is how long the tokens of consistency are together, in one header: servers and proxies refuse headers of more than some kilobytes.
const maxWritten = 3000

// wrote keeps the newest tokens of consistency for half a minute: reads that bring them see these writes, but pass Kith's caches.
func (s *Session) wrote(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token != "" {
		s.written = append(s.written, token)
		for len(s.written) > 1 && len(strings.Join(s.written, ",")) > maxWritten {
			s.written = s.written[1:]
		}
		time.AfterFunc(30*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.written = slices.DeleteFunc(slices.Clone(s.written), func(one string) bool { return one == token })
		})
	}
}
