package rediscache

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/wire"
)

// BenchmarkForms prints tables of forms in which a list, and a user, may be stored in Redis. Times are
// those of one caller on the same machine, one look-up after another, and those that Redis reports for
// its commands.
//
//	go test ./storage/cache/rediscache -run '^$' -bench Forms -benchtime 1x
func BenchmarkForms(b *testing.B) {
	server := testenv.Redis(b)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	f := &forms{b: b, client: client, ctx: b.Context(), random: rand.New(rand.NewPCG(1, 2))}
	for _, text := range scripts {
		f.must(client.ScriptLoad(f.ctx, text).Err())
	}
	f.table = tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(f.table, "| ids | of | form | bytes | 50 memberships, µs (Redis) | first 20, µs (Redis) | whole list, µs (Redis) |")
	fmt.Fprintln(f.table, "|---|---:|---|---:|---:|---:|---:|")
	for _, ids := range []string{"dense", "Sonyflake"} {
		for _, n := range []int{50, 5000} {
			f.lists(ids, n)
		}
	}
	f.table.Flush()
	fmt.Println()
	f.users()
	b.ReportMetric(0, "ns/op")
}

type forms struct {
	b      *testing.B
	client *redis.Client
	ctx    context.Context
	random *rand.Rand
	table  *tabwriter.Writer
}

func (f *forms) must(err error) {
	if err != nil {
		f.b.Fatal(err)
	}
}

// edges are follows of user 1, in ascending order of the peer.
func (f *forms) edges(ids string, n int) []storage.Edge {
	list := make([]storage.Edge, n)
	id := storage.UserID(0)
	for i := range list {
		id += storage.UserID(f.random.IntN(2_000_000/n) + 1)
		peer := id
		if ids == "Sonyflake" {
			peer = id*60<<24 | storage.UserID(1024+f.random.IntN(4))
		}
		at := 1_700_000_000_000_000 + f.random.Int64N(60_000_000_000_000)
		list[i] = storage.Edge{From: 1, To: peer, Type: storage.Following, UpdateTime: storage.Micros(at)}
	}
	return list
}

// the operations of a form, each checked by how many edges it finds
type form struct {
	name                string
	store               func()
	members, first, all func() int
}

func (f *forms) lists(ids string, n int) {
	edges := f.edges(ids, n)
	asked := make([]string, 50) // half of them exist
	wanted := make([]storage.UserID, 50)
	for i := range asked {
		wanted[i] = edges[i*n/50].To + storage.UserID(i%2*3)
		asked[i] = wanted[i].String()
	}
	for _, form := range []form{f.hash(edges, asked), f.sorted(edges, asked), f.packed(edges, wanted)} {
		f.must(f.client.Del(f.ctx, "k").Err())
		form.store()
		bytes, err := f.client.MemoryUsage(f.ctx, "k", 0).Result()
		f.must(err)
		fmt.Fprintf(f.table, "| %s | %d | %s | %d | %s | %s | %s |\n", ids, n, form.name, bytes,
			f.time(form.members, 25), f.time(form.first, 20), f.time(form.all, n))
	}
}

// time calls a function often, and returns the microseconds of one call, and those spent in Redis.
func (f *forms) time(do func() int, want int) string {
	if n := do(); n != want {
		f.b.Fatalf("%d, want %d", n, want)
	}
	f.must(f.client.ConfigResetStat(f.ctx).Err())
	began, calls := time.Now(), 0
	for ; time.Since(began) < time.Second; calls++ {
		do()
	}
	took := time.Since(began)
	stats, err := f.client.Info(f.ctx, "commandstats").Result()
	f.must(err)
	server := 0.0
	for line := range strings.Lines(stats) {
		if _, after, ok := strings.Cut(line, "usec="); ok && !strings.Contains(line, "config") && !strings.Contains(line, "info") {
			text, _, _ := strings.Cut(after, ",")
			usec, err := strconv.ParseFloat(text, 64)
			f.must(err)
			if strings.HasPrefix(line, "cmdstat_evalsha") || !strings.Contains(stats, "cmdstat_evalsha") {
				server += usec // the time of a script includes the commands that it calls
			}
		}
	}
	return fmt.Sprintf("%.0f (%.1f)", float64(took.Microseconds())/float64(calls), server/float64(calls))
}

// hash has a field for each peer, with type and time as its value.
func (f *forms) hash(edges []storage.Edge, asked []string) form {
	all := func() []storage.Edge {
		fields, err := f.client.HGetAll(f.ctx, "k").Result()
		f.must(err)
		list := make([]storage.Edge, 0, len(fields))
		for peer, value := range fields {
			id, _ := strconv.ParseInt(peer, 10, 64)
			list = append(list, storage.Edge{From: 1, To: storage.UserID(id), Type: storage.EdgeType(value[0]), UpdateTime: storage.Micros(binary.BigEndian.Uint64([]byte(value[1:])))})
		}
		return list
	}
	return form{
		name: "hash",
		store: func() {
			for _, e := range edges {
				f.must(f.client.HSet(f.ctx, "k", e.To.String(), binary.BigEndian.AppendUint64([]byte{byte(e.Type)}, uint64(e.UpdateTime))).Err())
			}
		},
		members: func() int {
			values, err := f.client.HMGet(f.ctx, "k", asked...).Result()
			f.must(err)
			return len(slices.DeleteFunc(values, func(v any) bool { return v == nil }))
		},
		first: func() int { return len(newest(all())) },
		all: func() int {
			list := all()
			slices.SortFunc(list, func(a, b storage.Edge) int { return cmp.Compare(a.To, b.To) })
			return len(list)
		},
	}
}

func newest(list []storage.Edge) []storage.Edge {
	slices.SortFunc(list, func(a, b storage.Edge) int { return cmp.Compare(b.UpdateTime, a.UpdateTime) })
	return list[:20]
}

// sorted is a sorted set by time, which cannot hold blocks and tombstones.
func (f *forms) sorted(edges []storage.Edge, asked []string) form {
	members := make([]string, len(asked))
	copy(members, asked)
	return form{
		name: "sorted set",
		store: func() {
			for _, e := range edges {
				f.must(f.client.ZAdd(f.ctx, "k", redis.Z{Score: float64(e.UpdateTime), Member: e.To.String()}).Err())
			}
		},
		members: func() int {
			scores, err := f.client.ZMScore(f.ctx, "k", members...).Result()
			f.must(err)
			return len(slices.DeleteFunc(scores, func(s float64) bool { return s == 0 }))
		},
		first: func() int {
			some, err := f.client.ZRevRangeWithScores(f.ctx, "k", 0, 19).Result()
			f.must(err)
			return len(some)
		},
		all: func() int {
			some, err := f.client.ZRangeWithScores(f.ctx, "k", 0, -1).Result()
			f.must(err)
			list := make([]storage.Edge, len(some))
			for i, z := range some {
				id, _ := strconv.ParseInt(z.Member.(string), 10, 64)
				list[i] = storage.Edge{From: 1, To: storage.UserID(id), Type: storage.Following, UpdateTime: storage.Micros(z.Score)}
			}
			slices.SortFunc(list, func(a, b storage.Edge) int { return cmp.Compare(a.To, b.To) })
			return len(list)
		},
	}
}

// packed is the form that the cache uses, read by the script that it uses.
func (f *forms) packed(edges []storage.Edge, wanted []storage.UserID) form {
	all := func() []storage.Edge {
		text, err := listGet.EvalSha(f.ctx, f.client, []string{"k"}, "token", 1000, len(edges), 0).Text()
		f.must(err)
		l, err := parseList(storage.Forward, 1, text)
		f.must(err)
		return l.Edges
	}
	return form{
		name: "packed value",
		store: func() {
			f.must(f.client.Set(f.ctx, "k", listBytes(storage.Forward, storage.List{Edges: edges}, storage.ListQuery{}), 0).Err())
		},
		members: func() int {
			list, n := all(), 0
			for _, id := range wanted {
				if _, found := slices.BinarySearchFunc(list, id, func(e storage.Edge, id storage.UserID) int { return cmp.Compare(e.To, id) }); found {
					n++
				}
			}
			return n
		},
		first: func() int { return len(newest(all())) },
		all:   func() int { return len(all()) },
	}
}

// users compares a hash with a single value, each read by command and by script.
func (f *forms) users() {
	fmt.Fprintln(f.table, "| user as | bytes | 20 users, µs (Redis) |")
	fmt.Fprintln(f.table, "|---|---:|---:|")
	const getScript = "local v = redis.call('GET', KEYS[1]) if v then return v end return 0"
	sha, err := f.client.ScriptLoad(f.ctx, getScript).Result()
	f.must(err)
	p := storage.Profile{Exists: true, Counted: true, Counts: storage.Counts{Following: 50, Follower: 1234, Friend: 20, Version: 1300},
		User: storage.User{Handle: "someone_42", Name: "Some One", CreatedAt: 1_700_000_000_000_000, UpdatedAt: 1_700_000_000_000_000}}
	for i := range 20 {
		key := strconv.Itoa(i)
		f.must(f.client.HSet(f.ctx, "h"+key, "p", wire.AppendProfile(nil, p), "v", p.Counts.Version, "c", wire.AppendCounts(nil, p.Counts)).Err())
		f.must(f.client.Set(f.ctx, "s"+key, wire.AppendCounts(wire.AppendProfile([]byte("12345678"), p), p.Counts), 0).Err())
	}
	for _, way := range []struct {
		name, key string
		ask       func(pipe redis.Pipeliner, i string)
	}{
		{"hash, HMGET", "h1", func(pipe redis.Pipeliner, i string) { pipe.HMGet(f.ctx, "h"+i, "p", "v", "c", "l") }},
		{"hash, script", "h1", func(pipe redis.Pipeliner, i string) { userGet.EvalSha(f.ctx, pipe, []string{"h" + i}, "token", 1000) }},
		{"one value, GET", "s1", func(pipe redis.Pipeliner, i string) { pipe.Get(f.ctx, "s"+i) }},
		{"one value, script", "s1", func(pipe redis.Pipeliner, i string) { pipe.EvalSha(f.ctx, sha, []string{"s" + i}, "token", 1000) }},
	} {
		bytes, err := f.client.MemoryUsage(f.ctx, way.key, 0).Result()
		f.must(err)
		fmt.Fprintf(f.table, "| %s | %d | %s |\n", way.name, bytes, f.time(func() int {
			pipe := f.client.Pipeline()
			for i := range 20 {
				way.ask(pipe, strconv.Itoa(i))
			}
			done, err := pipe.Exec(f.ctx)
			f.must(err)
			return len(done)
		}, 20))
	}
	f.table.Flush()
}
