// Package traces makes OpenTelemetry spans of operations, and sends them to a collector by OTLP over HTTP.
//
// An operation has one span of the kind server. Below it are spans of parsing and planning and of each bundle of look-ups,
// and below those are their SQL statements. Only the first is made while the operation runs. The others are made at its end
// from what [kith/storage.ReadStats] has noted, so that the parts of the gateway below do not depend on spans, and an operation
// that is not sampled costs next to nothing. docs/inside/adr/0050-traces.md has the reasons.
package traces

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config says where spans are sent.
type Config struct {
	Settings
	Version  string // of the program
	Database string // "mysql" or "sqlite"
	Logger   *slog.Logger
}

// Traces makes and sends spans. Nil makes none.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	database attribute.KeyValue
}

// Open begins to send spans; it returns nil if they are off. It does not connect yet: the collector may start later. Spans
// wait in a queue of [QueuedSpans]; those that cannot be sent are dropped.
func Open(ctx context.Context, cfg Config) (*Traces, error) {
	if cfg.Endpoint == "" {
		return nil, nil
	}
	client, err := newExporter(cfg.Endpoint, cfg.Version, os.Getenv)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "kith"), attribute.String("service.version", cfg.Version)),
		resource.WithFromEnv()) // these override: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
	if err != nil {
		return nil, err
	}
	sending := &reporting{SpanExporter: client, logger: cfg.Logger}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(sending.failed))
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(sending, sdk.WithMaxQueueSize(QueuedSpans)),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(cfg.Ratio))),
		sdk.WithResource(about))
	return &Traces{provider, provider.Tracer("kith"), attribute.String("db.system.name", cfg.Database)}, nil
}

// QueuedSpans is how many spans wait to be sent at most, some 4 MB; further ones are dropped.
const QueuedSpans = 4096

// Close sends what is left, within the context's time.
func (t *Traces) Close(ctx context.Context) {
	if t != nil {
		_ = t.provider.Shutdown(ctx) // failures are reported as they come
	}
}

// reporting is an exporter that logs the first of several failures, and when it works again.
type reporting struct {
	sdk.SpanExporter
	logger  *slog.Logger
	failing atomic.Bool
}

// ExportSpans implements [sdk.SpanExporter].
func (r *reporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := r.SpanExporter.ExportSpans(ctx, spans); err != nil {
		r.failed(err)
	} else if r.failing.Swap(false) {
		r.logger.Info("traces can be sent again")
	}
	return nil // it has been reported
}

func (r *reporting) failed(err error) {
	if !r.failing.Swap(true) && !errors.Is(err, context.Canceled) {
		r.logger.Warn("cannot send traces: dropping them until it works again", "error", err)
	}
}
