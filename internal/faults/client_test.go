package faults_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/must"
)

// client has one connection to each gateway, for one request at a time. Requests carry a token of
// the viewer who asks.
type client struct {
	http   *http.Client
	tokens func(viewer int64) string
}

func (d *deployment) client(t testing.TB) *client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	known := map[int64]string{}
	return &client{
		http: &http.Client{Transport: transport, Timeout: 30 * time.Second},
		tokens: func(viewer int64) string {
			if known[viewer] == "" {
				known[viewer] = d.token(t, viewer)
			}
			return known[viewer]
		},
	}
}

// answer is an answer over GraphQL.
type answer struct {
	Data   map[string]json.RawMessage
	Errors []struct {
		Message    string
		Path       []any
		Extensions struct{ Code string }
	}
	Extensions struct {
		Stale            bool
		ConsistencyToken string
	}
}

// code is the code of the first error, or "".
func (a answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Extensions.Code
}

// busy reports whether the gateway refused to read, and asks the client to try again soon.
func (a answer) busy() bool {
	return a.code() == "UNAVAILABLE" && strings.HasPrefix(a.Errors[0].Message, "the server is busy")
}

// errNotSent says that the gateway could not be reached, so it has not seen the request.
var errNotSent = errors.New("not sent")

// ask sends one request for a viewer. token may be "". After an error other than errNotSent it is
// unknown whether the request was executed.
func (c *client) ask(ctx context.Context, url string, viewer int64, token, query string, variables map[string]any) (answer, error) {
	var a answer
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return a, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.tokens(viewer))
	if token != "" {
		request.Header.Set("Kith-Consistency", token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		if opening, ok := errors.AsType[*net.OpError](err); ok && opening.Op == "dial" {
			err = fmt.Errorf("%w: %w", errNotSent, err)
		}
		return a, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("status %d: %q: %w", response.StatusCode, text, err)
	}
	return a, nil
}

// asks sends a gateway a request of a viewer, which has to be answered without errors.
func (n *node) asks(t testing.TB, c *client, viewer int64, query string, variables map[string]any) answer {
	t.Helper()
	a, err := c.ask(t.Context(), n.now.Load().gateway.URL, viewer, "", query, variables)
	must.That(t, err == nil && len(a.Errors) == 0, "%s answers %s of user %d: %+v, %v", n.name, query, viewer, a.Errors, err)
	return a
}

// followed is the payload of a mutation, without the fields from the inverse side, and its token. So it waits for nothing.
type followed struct {
	Changed bool
	token   string
}

func (a answer) followed() (f followed, err error) {
	err = json.Unmarshal(a.Data["m"], &f)
	f.token = a.Extensions.ConsistencyToken
	return f, err
}

const lean = `{ changed relationship { following } }`

// mutation writes follow, unfollow or removeFollower, with the alias `m`.
func mutation(field, payload string) string {
	return `mutation($id: ID!) { m: ` + apitest.Call(field, "$id") + ` ` + payload + ` }`
}

const followMany = `mutation($ids: [ID!]!) { m: followMany(userIds: $ids) { outcomes { userId changed relationship { followedAt } error { code message } } } }`

func id(n int64) string { return strconv.FormatInt(n, 10) }

// edge is a follow, from one user to another.
type edge struct{ from, to int64 }

func (e edge) String() string { return fmt.Sprintf("{%d %d}", e.from, e.to) }

// versions reads the versions of edges from a consistency token. Each mark is a byte for its kind,
// 1 for an edge, and three numbers. The signature is at the end.
func versions(token string) (map[edge]int64, error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, err
	}
	const signature = 16
	list := map[edge]int64{}
	for len(b) > signature {
		what := b[0]
		b = b[1:]
		var numbers [3]int64
		for i := range numbers {
			n, size := binary.Uvarint(b)
			if size <= 0 {
				return nil, fmt.Errorf("%q is no token", token)
			}
			numbers[i], b = int64(n), b[size:]
		}
		if what == 1 {
			list[edge{numbers[0], numbers[1]}] = numbers[2]
		}
	}
	return list, nil
}

// metric adds up the values of a metric whose labels contain a text. It returns 0 if the metric
// does not exist.
func (l *life) metric(t testing.TB, name, label string) float64 {
	t.Helper()
	_, text := l.gateway.Get(t, "/metrics")
	sum := 0.0
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '{') || !strings.Contains(rest, label) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		must.That(t, err == nil, "%s: %v", line, err)
		sum += value
	}
	return sum
}
