package cli

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"kith/gateway/traces"
)

// openTraces begins to send traces if the variables of OpenTelemetry say where to.
func openTraces(ctx context.Context, settings *Settings, logger *slog.Logger) (*traces.Traces, error) {
	where, err := traces.Read(os.Getenv)
	if err != nil {
		return nil, err
	}
	database, _, _ := strings.Cut(settings.Store, ":")
	return traces.Open(ctx, traces.Config{Settings: where, Version: ThisBuild().Version, Database: database, Logger: logger})
}

// flushTime bounds how long the end of the program waits for a collector.
const flushTime = 3 * time.Second

// closeTraces returns a function that sends the last spans once nothing else runs. It may take the rest of the time for
// requests under way, and flushTime at most.
func (c *ServeCmd) closeTraces(ctx context.Context, t *traces.Traces) func() {
	if t == nil {
		return func() {}
	}
	within, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(c.StopDelay+c.Drain, end) })
	return func() {
		defer end()
		flushing, cancel := context.WithTimeout(within, flushTime)
		defer cancel()
		t.Close(flushing)
	}
}
