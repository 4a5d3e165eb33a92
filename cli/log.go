package cli

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Logger makes the program's logger.
func (s *Settings) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// StoreName names the store, without credentials.
func (s *Settings) StoreName() string {
	scheme, rest, _ := strings.Cut(s.Store, ":")
	shards := strings.Split(rest, ";")
	if scheme == "sqlite" && len(shards) == 1 {
		return "the graph in " + rest
	}
	return fmt.Sprintf("the graph on %d %s shard(s)", len(shards), scheme)
}
