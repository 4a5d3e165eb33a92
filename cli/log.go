package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Logger makes the program's logger.
func (s *Settings) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if s.LogFormat == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(sampled{handler, &sample{windows: map[string]*window{}}})
}

// sampled passes on the first failures of each message in a while: warnings and errors with the attribute "error". One cause,
// such as a Redis that is gone, would otherwise write lines for every request. Lines without it are records, such as a finding,
// a slow operation or a panic, each about something else: all of them pass.
type sampled struct {
	slog.Handler
	sample *sample
}

const (
	sampleOf    = 10 // lines of one message
	sampleEvery = 30 * time.Second
)

type sample struct {
	mu      sync.Mutex
	windows map[string]*window // by message, of which the program has some hundred
}

type window struct {
	began   time.Time
	lines   int
	leftOut int // in the window before, too, until a line says so
}

// Handle implements [slog.Handler].
func (h sampled) Handle(ctx context.Context, r slog.Record) error {
	failure := false
	r.Attrs(func(a slog.Attr) bool {
		failure = a.Key == "error"
		return !failure
	})
	if failure && r.Level >= slog.LevelWarn {
		leftOut, passes := h.sample.take(r.Message, r.Time)
		if !passes {
			return nil
		}
		if leftOut > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("left_out", leftOut))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// take reports whether a line passes, and how many like it were left out before it.
func (s *sample) take(message string, now time.Time) (leftOut int, passes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.windows[message]
	if w == nil {
		w = &window{began: now}
		s.windows[message] = w
	}
	if now.Sub(w.began) > sampleEvery {
		w.began, w.lines = now, 0
	}
	if w.lines == sampleOf {
		w.leftOut++
		return 0, false
	}
	w.lines++
	leftOut, w.leftOut = w.leftOut, 0
	return leftOut, true
}

// WithAttrs implements [slog.Handler].
func (h sampled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sampled{h.Handler.WithAttrs(attrs), h.sample}
}

// WithGroup implements [slog.Handler].
func (h sampled) WithGroup(name string) slog.Handler {
	return sampled{h.Handler.WithGroup(name), h.sample}
}

// StoreName names a store of so many shards, those that were added included, without credentials, for terminals.
func (s *Settings) StoreName(shards int) string {
	scheme, rest, _ := strings.Cut(s.Store, ":")
	if scheme == "sqlite" && shards == 1 {
		return "the graph in " + printable(rest)
	}
	return fmt.Sprintf("the graph on %d %s shard(s)", shards, scheme)
}
