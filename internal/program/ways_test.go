package program_test

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// A way is what requests of one kind pass on their way through the program.
type way struct {
	name    string // of its section in docs/inside/architecture.md
	query   func(i int) string
	as      string // the user who asks, "" for nobody
	files   int    // at most these
	folders int    // at most these packages
	gateway int    // at most these files of gateway/
}

// The bounds keep the program readable: who follows one request has to read these files. Lower them when a way has become shorter.
var ways = []way{
	{
		name:  "The way of a read",
		query: func(int) string { return `{ user(by: {id: 1}) { followings(first: 20) { nodes { name } } } }` },
		files: 43, folders: 18, gateway: 5,
	},
	{
		name: "The way of a write",
		query: func(i int) string {
			return "mutation { " + []string{"follow", "unfollow"}[i%2] + "(userId: 1283) { changed } }"
		},
		as: "1", files: 74, folders: 24, gateway: 5,
	},
}

// besides are files that run beside requests, in rounds that on a slow machine come as often as requests, and in each span or in none: whoever
// follows relation_log reads rows, and whoever keeps recent posts asks for them. They do not count.
var besides = []string{"storage/sqlstore/internal/db/rows.go", "storage/bundle.go"}

// TestWaysAreShortAndDescribed: a request passes few files, and docs/inside/architecture.md names all of them and no others. A file is on
// the way if a part of it runs once or more for each request.
func TestWaysAreShortAndDescribed(t *testing.T) {
	t.Parallel()
	program := kithtest.Covered(t)
	text := must.File(t, "../../docs/inside/architecture.md")
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			files := w.passed(t, program)
			folders, gateway := map[string]bool{}, 0
			for _, file := range files {
				folders[path.Dir(file)] = true
				if path.Dir(file) == "gateway" {
					gateway++
				}
			}
			if len(files) > w.files || len(folders) > w.folders || gateway > w.gateway {
				t.Errorf("%d files of %d packages, %d of gateway, want at most %d, %d, %d:\n%s",
					len(files), len(folders), gateway, w.files, w.folders, w.gateway, strings.Join(files, "\n"))
			}
			described := filesOf(section(t, string(text), w.name))
			for _, file := range files {
				check.That(t, slices.Contains(described, file), "docs/inside/architecture.md, %q, lacks %s", w.name, file)
			}
			for _, file := range described {
				if !slices.Contains(files, file) && !slices.Contains(besides, file) {
					t.Errorf("docs/inside/architecture.md, %q, names %s, which no such request passes", w.name, file)
				}
			}
		})
	}
}

// passed lists the files that each of many requests passes, in alphabetical order, without generated ones.
func (w way) passed(t *testing.T, program kithtest.Option) []string {
	t.Helper()
	const requests, most = 500, 350 // some may be answered in another way; half are follows, and half unfollows
	counters, counted := kithtest.NewCounters(t)
	g := kithtest.Start(t, program, counted, kithtest.Args("--store", kithtest.DemoStore(t, 1)),
		kithtest.Env("KITH_JWT_SECRET="+secret))
	if w.as != "" {
		g.Token = signed(t, jwt.MapClaims{"sub": w.as})
	}
	ask := func(n int) {
		for i := range n {
			g.Query(t, w.query(i), nil, new(any))
		}
	}
	ask(4)
	now := counters.Take(t, g.Command).Blocks(t)
	g.Until(t, "be warm", func() bool { // the cache warms up
		time.Sleep(200 * time.Millisecond)
		earlier := now
		now = counters.Take(t, g.Command).Blocks(t)
		return len(ranOften(earlier, now, requests)) == 0
	})
	// What runs again and again now is no request's, such as looking for other shards each second. What runs in one span only may be what the
	// start has left, and on a busy machine a span may pass without anything.
	spans := map[string]int{} // in which a block has run
	for range 4 {
		time.Sleep(2 * time.Second)
		earlier := now
		now = counters.Take(t, g.Command).Blocks(t)
		for _, block := range ranOften(earlier, now, 1) {
			spans[block]++
		}
	}
	ask(requests)
	after := counters.Take(t, g.Command).Blocks(t)
	maps.DeleteFunc(after, func(block string, _ int) bool { return spans[block] > 1 })
	files := map[string]bool{}
	for _, block := range ranOften(now, after, most) {
		file, _, _ := strings.Cut(block, ":")
		if file = strings.TrimPrefix(file, "kith/"); !slices.Contains(besides, file) {
			files[file] = true
		}
	}
	return slices.Sorted(maps.Keys(files))
}

// ranOften lists the blocks that have run at least n times in between.
func ranOften(before, after map[string]int, n int) (blocks []string) {
	for block, ran := range after {
		if ran-before[block] >= n {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// section returns the text below a heading of a page.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n## "+heading+"\n")
	must.That(t, found, "there is no section %q", heading)
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// filesOf lists the Go files that a text names, such as `gateway/params.go`.
func filesOf(text string) (files []string) {
	for _, found := range regexp.MustCompile("`([a-z_/]+\\.go)`").FindAllStringSubmatch(text, -1) {
		files = append(files, found[1])
	}
	return files
}
