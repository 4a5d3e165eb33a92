package cli

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"

	"kith/gateway/traces"
)

// tracing is where traces are sent, if they are on.
func (c *ServeCmd) tracing() (traces.Settings, error) {
	ratio := -1.0
	if c.TraceRatio != nil {
		if ratio = *c.TraceRatio; ratio < 0 { // a negative ratio means that it is not set
			ratio = math.NaN()
		}
	}
	s, err := traces.Read(c.OTLPEndpoint, ratio, os.Getenv)
	switch {
	case errors.Is(err, traces.ErrRatio) && c.TraceRatio != nil:
		return s, Misset("trace-ratio", err)
	case errors.Is(err, traces.ErrEndpoint) && c.OTLPEndpoint != "":
		return s, Misset("otlp-endpoint", err)
	}
	return s, err
}

func (c *ServeCmd) openTraces(ctx context.Context, settings *Settings, logger *slog.Logger) (*traces.Traces, error) {
	where, err := c.tracing()
	if err != nil {
		return nil, err
	}
	database, _, _ := strings.Cut(settings.Store, ":")
	opened, err := traces.Open(ctx, traces.Config{Settings: where, Version: ThisBuild().Version, Database: database, Logger: logger})
	if err != nil {
		return nil, Misset("otlp-endpoint", err)
	}
	return opened, nil
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
