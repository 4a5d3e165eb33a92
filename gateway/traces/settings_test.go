package traces

import (
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	const collector = "http://collector:4318"
	for name, c := range map[string]struct {
		env  map[string]string
		want Settings
		says string // of the error
	}{
		"off":                  {},
		"variable":             {env: map[string]string{varEndpoint: collector}, want: Settings{collector + "/v1/traces", 1}},
		"variable with a path": {env: map[string]string{varEndpoint: collector + "/otlp/"}, want: Settings{collector + "/otlp/v1/traces", 1}},
		"variable of traces":   {env: map[string]string{varEndpoint: collector, varTraces: collector + "/t"}, want: Settings{collector + "/t", 1}},
		"disabled":             {env: map[string]string{varEndpoint: collector, varDisabled: "true"}},
		"no exporter":          {env: map[string]string{varEndpoint: collector, varExporter: "none"}},
		"sampler":              {env: map[string]string{varEndpoint: collector, varSampler: "parentbased_traceidratio", varArgument: "0.25"}, want: Settings{collector + "/v1/traces", .25}},
		"argument alone":       {env: map[string]string{varEndpoint: collector, varArgument: "0.25"}, want: Settings{collector + "/v1/traces", .25}},
		"sampler off":          {env: map[string]string{varEndpoint: collector, varSampler: "always_off"}, want: Settings{collector + "/v1/traces", 0}},
		"no address variable":  {env: map[string]string{varEndpoint: "collector:4318"}, says: varEndpoint},
		"no address traces":    {env: map[string]string{varTraces: "/t"}, says: varTraces},
		"unknown sampler":      {env: map[string]string{varEndpoint: collector, varSampler: "jaeger_remote"}, says: "jaeger_remote"},
		"argument":             {env: map[string]string{varEndpoint: collector, varSampler: "traceidratio", varArgument: "2"}, says: varArgument},
		"argument is no text":  {env: map[string]string{varEndpoint: collector, varSampler: "traceidratio", varArgument: "half"}, says: varArgument},
		"protocol":             {env: map[string]string{varEndpoint: collector, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, says: `"grpc"`},
		"headers":              {env: map[string]string{varEndpoint: collector, "OTEL_EXPORTER_OTLP_HEADERS": "a=1,secret"}, says: "OTEL_EXPORTER_OTLP_HEADERS"},
		"time limit":           {env: map[string]string{varEndpoint: collector, "OTEL_EXPORTER_OTLP_TIMEOUT": "1s"}, says: "OTEL_EXPORTER_OTLP_TIMEOUT"},
	} {
		got, err := Read(func(name string) string { return c.env[name] })
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: %v", name, err)
		case c.says == "" && (err != nil || got.Endpoint != c.want.Endpoint || got.Endpoint != "" && got != c.want):
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
