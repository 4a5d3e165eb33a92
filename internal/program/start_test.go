package program_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// TestServesAnEmptyStore starts the program as `go run .` does: in an empty folder, with no setting
// but the port.
func TestServesAnEmptyStore(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	g := kithtest.Announced(t, kithtest.Launch(t, kithtest.Dir(folder), kithtest.Env("KITH_ADDR=127.0.0.1:0")))

	textAs(t, g, "", `{ viewer { user { id } } user(by: {id: "1"}) { id } users(by: {ids: ["1", "2"]}) { id } relationship(from: "1", to: "2") { status } }`,
		`{"data":{"viewer":null,"user":null,"users":[null,null],"relationship":{"status":"NONE"}}}`)
	_, err := os.Stat(filepath.Join(folder, "data", "kith.db"))
	must.OK(t, err)

	endedWell(t, g.Interrupt(t))
}

// TestAnnouncesItsAddresses requests every address that the program prints.
func TestAnnouncesItsAddresses(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t)
	want := "kith serves the graph in data/kith.db\n"
	check.That(t, strings.HasPrefix(g.Stdout(), want), "announced %q, want %q first", g.Stdout(), want)
	found := regexp.MustCompile(`(?m)^  (http://\S+)  +\S`).FindAllStringSubmatch(g.Stdout(), -1)
	var paths []string
	for _, m := range found {
		path := strings.TrimPrefix(strings.TrimPrefix(m[1], g.URL), g.Admin)
		paths = append(paths, path)
		if path == "/graphql" {
			path += "?query=" + url.QueryEscape("{__typename}")
		}
		if status, body := g.Get(t, path); status != http.StatusOK || body == "" {
			t.Errorf("%s: status %d, %d bytes", m[1], status, len(body))
		}
	}
	check.Equal(t, "the paths", strings.Join(paths, " "), "/ /app /graphql /healthz /readyz /metrics /schema.graphql /debug/pprof/")
}

// Without an address for operators, nothing for operators is served.
func TestWithoutAnAdminAddress(t *testing.T) {
	t.Parallel()
	c := kithtest.Launch(t, kithtest.Env("KITH_ADMIN_ADDR="), kithtest.Args("--addr=127.0.0.1:0"))
	c.Until(t, "serve", func() bool { return strings.Contains(c.Stdout(), "no --admin-addr is set") })
	base, _, _ := strings.Cut(c.Stdout()[strings.Index(c.Stdout(), "http://"):], "/ ")
	for path, want := range map[string]int{"/healthz": 200, "/": 200, "/metrics": 404, "/readyz": 404, "/schema.graphql": 404, "/debug/pprof/": 404} {
		answer, err := http.Get(base + path)
		must.OK(t, err)
		answer.Body.Close()
		check.Equal(t, path, answer.StatusCode, want)
	}
}

// TestFewFiles: connections for which the system leaves no files are refused as those beyond --max-connections are.
func TestFewFiles(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t, kithtest.Args("--demo"), func(c *exec.Cmd) {
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -n 64 && exec "$0" "$@"`, c.Path}, c.Args[1:]...)
	})
	check.Equal(t, "warnings", strings.Count(g.Stderr(), "\n"), 1)
	check.Has(t, "the warning", g.Stderr(), "files=64 connections=32 max_connections=20000")
	conns := make([]net.Conn, 60)
	for i := range conns {
		var err error
		conns[i], err = net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
		must.OK(t, err)
		defer conns[i].Close()
		must.OK(t, conns[i].SetDeadline(time.Now().Add(time.Minute)))
	}
	for _, conn := range conns { // of which some are closed
		_, _ = io.WriteString(conn, "GET /graphql?query={user(by:{id:1}){handle}} HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\n\r\n")
	}
	answered := 0
	for i, conn := range conns {
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if hangs, ok := err.(net.Error); ok {
			must.That(t, !hangs.Timeout(), "connection %d gets no answer", i)
		}
		if err == nil {
			answered++
			check.Equal(t, "status", answer.StatusCode, http.StatusOK)
		}
	}
	check.That(t, answered >= 16, "%d connections of one address are answered, want half of 32", answered)
}

func TestLoadsTheDemoGraphOnce(t *testing.T) {
	t.Parallel()
	file := newSQLite(t, 1)
	options := kithtest.Args("--demo", "--store", location(file...))
	g := kithtest.Start(t, options)
	users, follows := people(t, g)
	check.That(t, users >= 1_900 && users <= 2_100 && follows >= 38_000 && follows <= 42_000, "%d users with %d follows, want about 2,000 and 40,000", users, follows)
	g.Interrupt(t)

	// If the demo graph were loaded again, this follow would come back.
	const cancelled = " WHERE from_user_id = 1 AND to_user_id = (SELECT MIN(to_user_id) FROM following WHERE from_user_id = 1)"
	file[0].exec(t, "DELETE FROM following"+cancelled)
	file[0].exec(t, "UPDATE user_counts SET following_count = following_count - 1 WHERE user_id = 1")
	g = kithtest.Start(t, options)
	u, f := people(t, g)
	check.Equal(t, "users and follows after the second start", [2]int{u, f}, [2]int{users, follows - 1})
	check.Equal(t, "rows of following after the second start", file[0].text(t, "SELECT COUNT(*) FROM following"), fmt.Sprint(follows-1))
}

// people counts users, whose ids start at 1 without gaps, and their follows. It also checks their names.
func people(t *testing.T, g *kithtest.Gateway) (users, follows int) {
	t.Helper()
	for {
		var ids []string
		for i := range 500 {
			ids = append(ids, fmt.Sprint(users+i+1))
		}
		var answer struct {
			Users []*struct {
				Handle, Name   string
				FollowingCount int
			}
		}
		g.Query(t, `query($ids: [ID!]!) { users(by: {ids: $ids}) { handle name followingCount } }`, map[string]any{"ids": ids}, &answer)
		for _, u := range answer.Users {
			if u == nil {
				return users, follows
			}
			if !regexp.MustCompile(`^\p{L}+[ '\p{L}-]+$`).MatchString(u.Name) || strings.HasPrefix(u.Handle, "u1") {
				t.Errorf("user %d is called %q, %q", users+1, u.Handle, u.Name)
			}
			users++
			follows += u.FollowingCount
		}
	}
}

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	environment := kithtest.Env(
		"KITH_ADDR=127.0.0.1:0",
		"KITH_STORE=sqlite:environment.db",
		"KITH_LOG_FORMAT=json",
		"KITH_LOG_LEVEL=debug",
		"KITH_CORS_ORIGIN=https://one.example,https://two.example",
		"KITH_HIDE_SCHEMA=true",
		"KITH_DEMO=true",
	)

	g := kithtest.Announced(t, kithtest.Launch(t, kithtest.Dir(folder), environment))
	users, _ := people(t, g)
	check.That(t, users != 0, "KITH_DEMO loads nothing")
	answer, err := g.Ask(`{ __schema { types { name } } }`, nil)
	check.That(t, err == nil && len(answer.Errors) != 0, "KITH_HIDE_SCHEMA: errors %v, %v", answer.Errors, err)
	for origin, allowed := range map[string]bool{"https://one.example": true, "https://two.example": true, "https://three.example": false} {
		check.Equal(t, "KITH_CORS_ORIGIN: "+origin, allowsOrigin(t, g, origin), allowed)
	}
	g.Interrupt(t)
	check.Has(t, "KITH_LOG_FORMAT, KITH_LOG_LEVEL", g.Stderr(), `{"time":`, `"level":"DEBUG"`)

	g = kithtest.Announced(t, kithtest.Launch(t, kithtest.Dir(folder), environment, kithtest.Args("serve",
		"--store", "sqlite:flag.db", "--log-level", "error", "--cors-origin", "https://three.example", "--demo=false")))
	users, _ = people(t, g)
	check.That(t, users == 0, "--demo=false: %d users", users)
	check.That(t, !allowsOrigin(t, g, "https://one.example") && allowsOrigin(t, g, "https://three.example"), "--cors-origin does not win over KITH_CORS_ORIGIN")
	g.Interrupt(t)
	check.Equal(t, "--log-level error", g.Stderr(), "")
	for _, name := range []string{"environment.db", "flag.db"} {
		_, err := os.Stat(filepath.Join(folder, name))
		check.That(t, err == nil, "%v", err)
	}
}

// allowsOrigin asks as a browser does before it posts from a page of that origin.
func allowsOrigin(t *testing.T, g *kithtest.Gateway, origin string) bool {
	t.Helper()
	r, err := http.NewRequest(http.MethodOptions, g.URL+"/graphql", nil)
	must.OK(t, err)
	r.Header.Set("Origin", origin)
	r.Header.Set("Access-Control-Request-Method", http.MethodPost)
	r.Header.Set("Access-Control-Request-Headers", "content-type")
	answer, err := http.DefaultClient.Do(r)
	must.OK(t, err)
	answer.Body.Close()
	return answer.Header.Get("Access-Control-Allow-Origin") == origin
}

func TestHelpReportsSettingsAndDefaults(t *testing.T) {
	t.Parallel()
	end := kithtest.Ends(t, 0, kithtest.Args("serve", "--help"))
	check.Equal(t, "errors", end.Stderr, "")
	check.Has(t, "the help", strings.Join(strings.Fields(end.Stdout), " "),
		"Default: 127.0.0.1:8080 ($KITH_ADDR).", "Default: sqlite:data/kith.db ($KITH_STORE).", "($KITH_REDIS)", "($KITH_CORS_ORIGIN)")
}
