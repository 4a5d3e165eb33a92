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
	var end time.Time
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		end = time.Now().Add(c.StopDelay + c.Drain)
		close(set)
	})
	return func() {
		left := flushTime
		if !stop() {
			<-set
			left = min(left, time.Until(end))
		}
		flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), left)
		defer cancel()
		t.Close(flushing)
	}
}
