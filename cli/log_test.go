package cli

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
	"kith/reconcile"
	"kith/storage"
)

// One cause does not fill the log: of a message, ten lines pass in 30 s, and a later line says how many did not.
func TestLogIsSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := (&Settings{LogLevel: "info"}).Logger(&out)
		count := func(part string) int { return strings.Count(out.String(), part) }
		for i := range 100 {
			logger.With("n", i).Warn("Redis is gone", "error", io.EOF)
			logger.Info("a user has signed in")
		}
		logger.Error("another cause")
		gone, info, other := count("Redis is gone"), count("signed in"), count("another cause")
		check.That(t, gone == 10 && info == 100 && other == 1, "%d, %d and %d lines", gone, info, other)
		time.Sleep(sampleEvery + time.Second)
		logger.Warn("Redis is gone", "error", io.EOF)
		logger.Warn("Redis is gone", "error", io.EOF)
		check.That(t, count("Redis is gone") == 12 && count("left_out=90") == 1, "%v", out.String())
	})
}

// Each finding of realtime is logged.
func TestFindingsAreNotSampled(t *testing.T) {
	var out bytes.Buffer
	logger := (&Settings{LogLevel: "info"}).Logger(&out)
	for i := range 40 {
		logFound(t.Context(), logger, reconcile.Finding{Kind: reconcile.Missing, Side: storage.Forward, Forward: storage.Edge{From: storage.UserID(i)}})
	}
	check.Equal(t, "lines", strings.Count(out.String(), "an edge disagrees"), 40)
}

func TestLogLevels(t *testing.T) {
	var out bytes.Buffer
	logger := (&Settings{LogLevel: "warn", LogFormat: "json"}).Logger(&out)
	logger.Info("not shown")
	logger.WithGroup("g").Warn("shown", slog.Int("a", 1))
	got := out.String()
	check.That(t, !strings.Contains(got, "not shown") && strings.Contains(got, `"g":{"a":1}`), "%v", got)
}
