package hostile_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/hostile"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// client makes a client that keeps its connections.
func client(t *testing.T) *http.Client {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: 30 * time.Second}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// answer is the answer to one request.
type answer struct {
	status int
	text   []byte
	took   time.Duration
}

// codes returns the codes of the errors.
func (a answer) codes() (codes []string) {
	var body struct {
		Errors []struct{ Extensions struct{ Code string } }
	}
	_ = json.Unmarshal(a.text, &body)
	for _, e := range body.Errors {
		codes = append(codes, e.Extensions.Code)
	}
	return codes
}

func send(ctx context.Context, c *http.Client, base string, d hostile.Document) (answer, error) {
	method, address := "POST", base+"/graphql"
	if d.Method != "" {
		method = d.Method
	}
	if d.Query != "" {
		address += "?" + d.Query
	}
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(d.Body))
	if err != nil {
		return answer{}, err
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	} else {
		r.Header.Set("X-Kith-Csrf", "1")
	}
	for name, value := range d.Header {
		r.Header.Set(name, value)
	}
	start := time.Now()
	response, err := c.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, text, time.Since(start)}, err
}

// decode returns how long the standard library takes to decode a text of JSON on this machine.
func decode(text []byte) time.Duration {
	began := time.Now()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	return time.Since(began)
}

// Every document is refused with a code in no more time than decoding the largest takes three times,
// or answered in less than a second. No answer reports a fault of the server, and refusals are
// short.
func TestEachDocument(t *testing.T) {
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1), "--login-limit", "0", "--address-limit", "0"))
	c := client(t)
	all := hostile.Documents()
	check.That(t, len(all) >= 60, "there are %d documents", len(all))
	largest := []byte("[" + strings.Repeat(`{"a":1},`, 31_000) + "1]")
	decoding := time.Hour
	for _, d := range all {
		t.Run(strings.ReplaceAll(d.Name, " ", "_"), func(t *testing.T) {
			best, limit := time.Hour, time.Duration(0)
			// The machine may be busy with something else, so one fast answer of many is enough.
			for began := time.Now(); best > limit && time.Since(began) < 20*time.Second; {
				if decoding = min(decoding, decode(largest)); !d.Answered {
					limit = 3 * decoding
				} else {
					limit = time.Second
				}
				a, err := send(t.Context(), c, g.URL, d)
				if err != nil {
					if d.Body != "" && len(d.Body) > 256<<10 && !errors.Is(err, context.DeadlineExceeded) {
						return // the request was cut off while it was sent
					}
					t.Fatal(err)
				}
				best = min(best, a.took)
				must.That(t, a.status < 500, "status %d: %.300s", a.status, a.text)
				err = d.Check(a.codes(), len(a.text))
				must.That(t, err == nil, "%v: status %d: %.300s", err, a.status, a.text)
			}
			check.That(t, best <= limit, "it took %s, more than %s", best, limit)
			t.Logf("%s of %s", best, limit)
		})
	}
	var one struct{ User struct{ Handle string } }
	g.Query(t, `{ user(by: {id: 1}) { handle } }`, nil, &one)
	check.That(t, one.User.Handle != "", "nobody is answered any more")
}
