package traces

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"kith/storage"
	"kith/storage/sleep"
)

// exporter posts spans to a collector as OTLP over HTTP has them (http/protobuf).
type exporter struct {
	url     string
	header  http.Header
	gzipped bool
	client  http.Client
}

// newExporter reads the variables that say how spans are sent. Those of traces go before those of all signals.
func newExporter(endpoint, version string, env func(string) string) (*exporter, error) {
	of := func(name string) string {
		return cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_"+name), env("OTEL_EXPORTER_OTLP_"+name))
	}
	e := &exporter{url: endpoint, header: http.Header{}, gzipped: of("COMPRESSION") == "gzip"}
	e.header.Set("User-Agent", "kith/"+version)
	e.header.Set("Content-Type", "application/x-protobuf")
	if e.gzipped {
		e.header.Set("Content-Encoding", "gzip")
	}
	for pair := range strings.SplitSeq(of("HEADERS"), ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			value, _ = url.PathUnescape(strings.TrimSpace(value)) // Read has checked it
			e.header.Set(strings.TrimSpace(key), value)
		}
	}
	milliseconds, _ := strconv.Atoi(cmp.Or(of("TIMEOUT"), "10000")) // checked, too
	e.client.Timeout = time.Duration(milliseconds) * time.Millisecond
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	e.client.Transport = transport
	e.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the headers may be secret
	if file := of("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate", file)
		}
	}
	if certificate, key := of("CLIENT_CERTIFICATE"), of("CLIENT_KEY"); certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and …_CLIENT_KEY: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return e, nil
}

// ExportSpans implements [sdk.SpanExporter]. If the collector has no time, it is asked again until the context ends.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	body, err := message(spans)
	if err != nil {
		return err
	}
	if e.gzipped {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(body) // it writes to memory
		_ = z.Close()
		body = packed.Bytes()
	}
	for wait := time.Second; ; wait *= 2 {
		again, err := e.post(ctx, body)
		if again < 0 || err == nil {
			return err
		}
		if sleep.For(ctx, max(wait, again)) != nil {
			return err
		}
	}
}

// post sends a message once. If it may be sent again, again is the time after which the collector wants it, and otherwise negative.
func (e *exporter) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	request.Header = e.header
	answer, err := e.client.Do(request)
	if err != nil {
		return -1, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return -1, cmp.Or(err, rejected(text))
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return time.Duration(max(0, min(seconds, 60))) * time.Second, errors.New(answer.Status)
	}
	return -1, errors.New(answer.Status)
}

// rejected is an error if a collector's answer says that it has not taken all spans: field 1 has their number and the reason.
func rejected(answer []byte) error {
	number, kind, n := protowire.ConsumeTag(answer)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return nil
	}
	if part, _ := protowire.ConsumeBytes(answer[n:]); len(part) > 0 {
		return fmt.Errorf("the collector did not take all spans: %q", part)
	}
	return nil
}

// Shutdown implements [sdk.SpanExporter].
func (e *exporter) Shutdown(context.Context) error { e.client.CloseIdleConnections(); return nil }

// message is an ExportTraceServiceRequest, which is written as these data are. All spans have one resource and one scope, because there is one
// provider and one tracer.
func message(spans []sdk.ReadOnlySpan) ([]byte, error) {
	scoped := &otlp.ScopeSpans{Scope: &common.InstrumentationScope{Name: spans[0].InstrumentationScope().Name}, Spans: storage.Each(spans, span)}
	return proto.Marshal(&otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: storage.Each(spans[0].Resource().Attributes(), keyValue)},
		ScopeSpans: []*otlp.ScopeSpans{scoped},
	}}})
}

func span(s sdk.ReadOnlySpan) *otlp.Span {
	of, parent := s.SpanContext(), s.Parent()
	trace, id := of.TraceID(), of.SpanID()
	out := &otlp.Span{
		TraceId: trace[:], SpanId: id[:], TraceState: of.TraceState().String(), Name: s.Name(),
		Kind:              otlp.Span_SpanKind(s.SpanKind()), // the library's kinds have the protocol's numbers
		StartTimeUnixNano: uint64(s.StartTime().UnixNano()), EndTimeUnixNano: uint64(s.EndTime().UnixNano()),
		Attributes: storage.Each(s.Attributes(), keyValue),
		Flags:      uint32(of.TraceFlags()) | uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK),
	}
	if parent.HasSpanID() {
		id := parent.SpanID()
		out.ParentSpanId = id[:]
	}
	if parent.IsRemote() {
		out.Flags |= uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	if status := s.Status(); status.Code == codes.Error {
		out.Status = &otlp.Status{Message: status.Description, Code: otlp.Status_STATUS_CODE_ERROR}
	}
	return out
}

func keyValue(a attribute.KeyValue) *common.KeyValue {
	return &common.KeyValue{Key: string(a.Key), Value: value(a.Value)}
}

// value is what spans have: texts, numbers, and lists of both.
func value(v attribute.Value) *common.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.INT64SLICE:
		return list(storage.Each(v.AsInt64Slice(), attribute.Int64Value))
	case attribute.STRINGSLICE:
		return list(storage.Each(v.AsStringSlice(), attribute.StringValue))
	}
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: v.String()}}
}

func list(values []attribute.Value) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: storage.Each(values, value)}}}
}
