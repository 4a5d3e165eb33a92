// Package web serves the query page at /: GraphiQL if it was built (make web), otherwise a plain
// query page of our own; and the app at /app. All of them work without any network except the
// gateway's: every file is embedded, and the Content-Security-Policy allows no other origin but those of the identity
// providers at which people sign in to the app.
package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Config says what the page shows and where it sends queries.
type Config struct {
	// Greeting is what the query page shows on first open if there are no examples, as a comment: what
	// the schema is about. Defaults to "".
	Greeting string

	// Examples are the operations that the query page shows on first open. GraphiQL has a tab for each.
	// Defaults to none.
	Examples []string

	// Host is the address that is listened on, with or without the port. Defaults to none.
	Host string

	// Demo lets visitors who open the pages on this machine, by a loopback name or by Host, be any user of
	// the demo graph. Other names are excluded because a name in a foreign DNS zone may lead here as well
	// (DNS rebinding), and a foreign page could then read tokens. Defaults to no users.
	Demo Demo

	// SignIns are the identity providers at which people sign in to the app. Defaults to none.
	SignIns []SignIn

	// WithoutPasswords leaves the app's forms for signing in and registering by password out: no gateway signs tokens.
	// Defaults to false.
	WithoutPasswords bool

	// WithoutGraphiQL leaves the query page out: / is 404. Defaults to false.
	WithoutGraphiQL bool

	// WithoutApp leaves the app out: its paths are 404. Defaults to false.
	WithoutApp bool

	// Assets are the built files. Defaults to [Assets], those embedded in the binary.
	Assets fs.FS
}

func (c Config) withDefaults() Config {
	if c.Assets == nil {
		c.Assets = Assets()
	}
	c.Examples, c.SignIns = append([]string{}, c.Examples...), append([]SignIn{}, c.SignIns...) // null is no list
	return c
}

// policy limits the page to the gateway's own origin, whatever a package in it tries to fetch.
//
//   - script-src has neither 'unsafe-eval' nor 'unsafe-inline': scripts are files of ours.
//   - style-src needs 'unsafe-inline': Monaco, GraphiQL's editor, places every line and
//     the caret by style attributes, and writes its theme into a <style> element. A nonce
//     does not cover attributes.
//   - font-src and img-src have data: for GraphiQL's fonts and Monaco's icons, which are inside the
//     style sheet.
//   - connect-src 'self' covers the WebSocket of subscriptions as well: the same host and port
//     (CSP 3, §6.7.2.8).
//   - worker-src is for the editor's three workers, plain files of ours: no blob:.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"font-src 'self' data:; img-src 'self' data:; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const queryFiles = "/graphiql/"

// Handler serves the page at exactly "/" and its files below "/graphiql/", the app below "/app",
// and faces below "/faces/"; any other path is 404. Methods other than GET and HEAD are 405, except
// POST at "/demo/token", where the pages sign in as a demo user. Mount it at "/".
//
// A page that has not been built is the plain one until there are files of it in the assets.
//
// Built files are embedded gzipped and sent with Content-Encoding set, so a compressing
// middleware has nothing left to do for them.
//
// They are read when a page is asked for the first time, so that a start does not wait for that.
func Handler(cfg Config) http.Handler { return &site{cfg: cfg.withDefaults()} }

// site is the handler of what has been built so far.
type site struct {
	cfg Config

	mu               sync.Mutex
	hasQuery, hasApp bool
	handler          *handler
}

// refresh makes the handler, and makes it anew if more has been built.
func (s *site) refresh() *handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hasQuery, hasApp := HasGraphiQL(s.cfg.Assets), HasApp(s.cfg.Assets); s.handler == nil || hasQuery != s.hasQuery || hasApp != s.hasApp {
		if made, err := newHandler(s.cfg); err == nil {
			s.hasQuery, s.hasApp, s.handler = hasQuery, hasApp, made
		} else if s.handler == nil {
			// All of it is in the binary: the tests have seen it work, or it is broken for everyone.
			panic(fmt.Errorf("web: %w", err))
		}
	}
	return s.handler
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.refresh().ServeHTTP(w, r) }

type handler struct {
	query, app page
	appPolicy  string
	demo       Demo
	host       string
	folders    []*folder
}

// page is a page without demo users, and with them.
type page struct{ shown, own text }

type text struct {
	body []byte
	etag string
}

func newHandler(cfg Config) (*handler, error) {
	own, err := newFolder(sub(pageFS, "page"), queryFiles)
	if err != nil {
		return nil, err
	}
	h := &handler{folders: []*folder{own}, host: hostname(cfg.Host), demo: cfg.Demo, appPolicy: appPolicy}
	for _, s := range cfg.SignIns {
		origin, err := s.origin()
		if err != nil {
			return nil, err
		}
		h.appPolicy += " " + origin
	}
	if !cfg.WithoutApp {
		name := "app.html"
		if h.app, err = h.open(cfg, own, "app", appFiles, name, name, HasApp(cfg.Assets)); err != nil {
			return nil, err
		}
	}
	if !cfg.WithoutGraphiQL {
		if h.query, err = h.open(cfg, own, "graphiql", queryFiles, "graphiql.html", "plain.html", HasGraphiQL(cfg.Assets)); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// open makes a page, and finds the files of a folder of the assets, to be served below root. The page is plain if they have not been
// built.
func (h *handler) open(cfg Config, own *folder, dir, root, name, plain string, isBuilt bool) (p page, err error) {
	data := pageData{Config: cfg, Page: own.prefix}
	if isBuilt {
		built, err := newFolder(sub(cfg.Assets, dir), root)
		if err != nil {
			return p, err
		}
		h.folders = append(h.folders, built)
		data.Built = built.prefix
	} else {
		name = plain
	}
	if p.own, err = render(name, data); err != nil {
		return p, err
	}
	data.Demo.Users = 0
	p.shown, err = render(name, data)
	return p, err
}

// pageData is what the templates see: the settings, and the URLs of the two folders.
type pageData struct {
	Config
	Page, Built string
}

// First is what the editor holds at first.
func (d pageData) First() string {
	if len(d.Examples) > 0 {
		return d.Examples[0]
	}
	return d.Welcome()
}

// Welcome is the greeting as a comment.
func (d pageData) Welcome() string {
	text := "Ctrl-Enter runs what is written below."
	if d.Greeting != "" {
		text = d.Greeting + "\n\n" + text
	}
	comment := "# " + strings.ReplaceAll(text, "\n", "\n# ") + "\n\n"
	return strings.ReplaceAll(comment, "# \n", "#\n")
}

// JSON is a list as HTML may hold it in an attribute.
func (pageData) JSON(list any) (string, error) {
	text, err := json.Marshal(list)
	return string(text), err
}

func render(name string, data pageData) (text, error) {
	t, err := template.ParseFS(pageFS, "page/"+name)
	if err != nil {
		return text{}, fmt.Errorf("parse %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return text{}, fmt.Errorf("render %s: %w", name, err)
	}
	sum := sha256.Sum256(b.Bytes())
	return text{b.Bytes(), `"` + hex.EncodeToString(sum[:6]) + `"`}, nil
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.setSecurityHeaders(w.Header(), r.URL.Path)
	if r.Method == http.MethodPost && r.URL.Path == demoPath {
		h.serveDemoToken(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	for _, f := range h.folders {
		if file, ok := f.find(r.URL.Path); ok {
			file.serve(w, r, f.version)
			return
		}
	}
	switch path := r.URL.Path; {
	case path == "/" && h.query.shown.body != nil:
		h.servePage(w, r, h.query)
	case strings.HasPrefix(path, facePath):
		serveFace(w, r)
	case isApp(path) && h.app.shown.body != nil && !strings.HasPrefix(path, appFiles):
		h.servePage(w, r, h.app)
	default:
		notFound(w)
	}
}

// servePage sends a page, which names its files by content. The page itself is requested again each
// time, and answered with 304 as long as nothing has changed.
func (h *handler) servePage(w http.ResponseWriter, r *http.Request, p page) {
	shown := p.shown
	if h.mayDemo(r) {
		shown = p.own
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", shown.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(shown.body))
}

// isOwn reports whether the name by which the page was requested can lead nowhere else: a loopback
// name, or the address that is listened on.
func (h *handler) isOwn(host string) bool {
	name := hostname(host)
	if name == "localhost" || name != "" && name == h.host {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}

// hostname is the name or address before the port, without brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

// setSecurityHeaders is called for every answer: a worker obeys the policy that its own file came
// with, not the page's.
func (h *handler) setSecurityHeaders(header http.Header, path string) {
	if isApp(path) || strings.HasPrefix(path, facePath) {
		header.Set("Content-Security-Policy", h.appPolicy)
	} else {
		header.Set("Content-Security-Policy", policy)
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// notFound answers must not be cached: during a rolling update the other gateway may have the file.
func notFound(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "not found", http.StatusNotFound)
}
