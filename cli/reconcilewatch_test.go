package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"kith/reconcile"
)

// TestAllGatewaysOfANameAreAsked: each by its own address, called as it was given, as long as the name leads to it.
func TestAllGatewaysOfANameAreAsked(t *testing.T) {
	serve := func(at string) string {
		listener, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprint(w, at, " ", r.Host, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ", len(body) > 0)
		})}}
		server.Start()
		t.Cleanup(server.Close)
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		return port
	}
	port := serve("127.0.0.1:0")
	serve("127.0.0.2:" + port)
	var addresses []string
	lookup := func(_ context.Context, host string) ([]string, error) {
		if host != "gateways" {
			return nil, errors.New("no such host")
		}
		return addresses, nil
	}
	c := &ReconcileWatchCmd{Gateways: []string{"http://gateways:" + port}}
	gateways := c.gateways(lookup, func() (string, error) { return "token", nil })
	for _, addresses = range [][]string{{"127.0.0.1", "127.0.0.2"}, {"127.0.0.2"}, {"127.0.0.1"}} {
		now := gateways(t.Context())
		if len(now) != len(addresses) {
			t.Errorf("%v: %v", addresses, slices.Collect(maps.Keys(now)))
		}
		for _, address := range addresses {
			answer, err := now["http://"+address+":"+port](t.Context(), reconcile.Question{Query: "{ x }"})
			at := map[string]string{"127.0.0.1": "127.0.0.1:0", "127.0.0.2": "127.0.0.2:" + port}[address]
			if want := at + " gateways:" + port + " /graphql Bearer token true"; err != nil || string(answer) != want {
				t.Errorf("%s: %s, %v; want %s", address, answer, err, want)
			}
		}
	}
	c.Gateways = []string{"https://gateways", "http://unknown", "http://[::1]:8080"}
	want := []string{"http://[::1]:8080", "http://unknown:80", "https://gateways:443"}
	if got := slices.Sorted(maps.Keys(gateways(t.Context()))); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
