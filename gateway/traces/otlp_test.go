package traces

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"kith/internal/must"
)

// sample is a span with attributes of all kinds, below a remote parent.
func sample() []sdk.ReadOnlySpan {
	at := func(span byte, remote bool) trace.SpanContext {
		state, _ := trace.ParseTraceState("a=b")
		return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{span}, TraceFlags: 1, TraceState: state, Remote: remote})
	}
	return tracetest.SpanStubs{{
		Name: "query", SpanContext: at(2, false), Parent: at(3, true), SpanKind: trace.SpanKindServer,
		StartTime: time.Unix(5, 6), EndTime: time.Unix(7, 8), Status: sdk.Status{Code: codes.Error, Description: "no"},
		Attributes: []attribute.KeyValue{
			attribute.Bool("yes", true), attribute.Bool("no", false), attribute.Int("negative", -1), attribute.String("text", "é"),
			attribute.IntSlice("numbers", []int{0, 7}), attribute.StringSlice("texts", []string{"", "a"}), attribute.BoolSlice("others", []bool{true}),
		},
		Resource: resource.NewSchemaless(attribute.String("service.name", "kith")),
	}}.Snapshots()
}

// TestCollectorsAreAnswered: spans arrive whole, packed, with the headers that are set, over TLS with certificates of both sides, and again if
// the collector has no time; what it refuses is a failure.
func TestCollectorsAreAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  []int // of the answers, one after another
		body    string
		failure string
	}{
		"taken":       {status: []int{200}},
		"taken later": {status: []int{503, 200}},
		"refused":     {status: []int{400}, failure: "400 Bad Request"},
		"in part":     {status: []int{200}, body: "\x0a\x06\x08\x01\x12\x02no", failure: "did not take all spans"},
		"elsewhere":   {status: []int{308}, failure: "308 Permanent Redirect"}, // where the headers, which may be secret, must not go
		"all":         {status: []int{200}, body: "\x0a\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got otlp.TracesData
			asked := 0
			collector := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				z, err := gzip.NewReader(r.Body)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(z)
				if err != nil || proto.Unmarshal(body, &got) != nil || r.Header.Get("X-Key") != "k 1" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.URL.Path != "/v1/traces" {
					t.Errorf("%v, %v", r.Header, err)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status[asked])
				_, _ = io.WriteString(w, c.body)
				asked++
			}))
			collector.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
			collector.StartTLS()
			defer collector.Close()
			certificate, key := pair(t, collector)
			e, err := newExporter(collector.URL+"/v1/traces", "1.2.3", func(name string) string {
				return map[string]string{
					"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_CERTIFICATE": certificate, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=other",
					"OTEL_EXPORTER_OTLP_TRACES_HEADERS": " x-key = k%201,", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": certificate, "OTEL_EXPORTER_OTLP_CLIENT_KEY": key,
				}[name]
			})
			must.OK(t, err)
			err = e.ExportSpans(t.Context(), sample())
			if c.failure == "" && err != nil || c.failure != "" && (err == nil || !strings.Contains(err.Error(), c.failure)) || asked != len(c.status) {
				t.Errorf("%v after %d messages", err, asked)
			}
			const want = `resource_spans:{resource:{attributes:{key:"service.name" value:{string_value:"kith"}}} scope_spans:{scope:{} spans:{` +
				`trace_id:"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" span_id:"\x02\x00\x00\x00\x00\x00\x00\x00" trace_state:"a=b" ` +
				`parent_span_id:"\x03\x00\x00\x00\x00\x00\x00\x00" flags:769 name:"query" kind:SPAN_KIND_SERVER start_time_unix_nano:5000000006 end_time_unix_nano:7000000008 ` +
				`attributes:{key:"yes" value:{bool_value:true}} attributes:{key:"no" value:{bool_value:false}} attributes:{key:"negative" value:{int_value:-1}} ` +
				`attributes:{key:"text" value:{string_value:"é"}} ` +
				`attributes:{key:"numbers" value:{array_value:{values:{int_value:0} values:{int_value:7}}}} ` +
				`attributes:{key:"texts" value:{array_value:{values:{string_value:""} values:{string_value:"a"}}}} attributes:{key:"others" value:{string_value:"[true]"}} ` +
				`status:{message:"no" code:STATUS_CODE_ERROR}}}}`
			if said := strings.ReplaceAll(got.String(), "  ", " "); said != want { // String puts in blanks at random, so that nobody compares it byte by byte
				t.Errorf("got  %s\nwant %s", said, want)
			}
		})
	}
}

// pair writes the certificate of a server, and its key, into files.
func pair(t *testing.T, server *httptest.Server) (certificate, key string) {
	t.Helper()
	folder := t.TempDir()
	certificate, key = filepath.Join(folder, "certificate.pem"), filepath.Join(folder, "key.pem")
	private, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	must.OK(t, err)
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: server.Certificate().Raw}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		must.OK(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return certificate, key
}

// TestExporterRefusesFilesThatAreNone: a program with them does not start.
func TestExporterRefusesFilesThatAreNone(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		_, err := newExporter("https://localhost", "", func(asked string) string {
			if asked == "OTEL_EXPORTER_OTLP_"+name {
				return none
			}
			return ""
		})
		if err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_C") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e, err := newExporter("http://127.0.0.1:1", "", func(string) string { return "" })
	must.OK(t, err)
	if err := e.ExportSpans(ctx, sample()); err == nil {
		t.Error("sent to nobody")
	}
}
