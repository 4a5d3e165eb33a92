package webtest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder is an HTTP proxy that a page is sent through, loopback included: it notes every address
// that the page or one of its workers requests, and passes on only requests to the gateway.
type recorder struct {
	origin string   // "http://127.0.0.1:8080"
	others []string // origins that the page may ask as well
	proxy  *httptest.Server

	mu   sync.Mutex
	urls []string
}

// record starts a recorder in front of the gateway at origin; it ends with the test.
func record(t testing.TB, origin string) *recorder {
	r := &recorder{origin: origin}
	// The request's URL is absolute already, so there is nothing to rewrite.
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	r.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		url := req.URL.String()
		if req.Method == http.MethodConnect { // https and websockets come as a tunnel to a host
			url = "connect://" + req.Host
		}
		r.mu.Lock()
		r.urls = append(r.urls, url)
		r.mu.Unlock()
		switch {
		case !r.ours(url):
			http.Error(w, "no such host in this test", http.StatusBadGateway)
		case req.Method == http.MethodConnect:
			tunnel(w, req.Host)
		default:
			forward.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(r.proxy.Close)
	return r
}

func (r *recorder) ours(url string) bool {
	return strings.HasPrefix(url, r.origin+"/") || url == "connect://"+strings.TrimPrefix(r.origin, "http://") ||
		slices.ContainsFunc(r.others, func(origin string) bool { return strings.HasPrefix(url, origin+"/") })
}

// tunnel joins the browser to a host until one of the two hangs up.
func tunnel(w http.ResponseWriter, host string) {
	there, err := net.Dial("tcp", host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{there, here}, {here, there}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // until one end is closed
			ended <- struct{}{}
		}()
	}
	<-ended
}

// requests returns the addresses asked for so far, in order.
func (r *recorder) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.urls)
}

// foreign returns the addresses that are not the gateway's.
func (r *recorder) foreign() []string {
	return slices.DeleteFunc(r.requests(), r.ours)
}
