package traces

import (
	"math"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	const collector = "http://collector:4318"
	for name, c := range map[string]struct {
		endpoint string
		ratio    float64
		env      map[string]string
		want     Settings
		says     string // of the error
	}{
		"off":                 {ratio: -1},
		"flag":                {endpoint: collector + "/", ratio: .5, want: Settings{collector + "/v1/traces", .5}},
		"flag with a path":    {endpoint: collector + "/otlp", ratio: 0, want: Settings{collector + "/otlp/v1/traces", 0}},
		"variable":            {ratio: -1, env: map[string]string{varEndpoint: collector}, want: Settings{collector + "/v1/traces", 1}},
		"variable of traces":  {ratio: -1, env: map[string]string{varEndpoint: collector, varTraces: collector + "/t"}, want: Settings{collector + "/t", 1}},
		"flag over variable":  {endpoint: "https://a", ratio: 1, env: map[string]string{varEndpoint: collector}, want: Settings{"https://a/v1/traces", 1}},
		"disabled":            {ratio: -1, env: map[string]string{varEndpoint: collector, varDisabled: "true"}},
		"no exporter":         {ratio: -1, env: map[string]string{varEndpoint: collector, varExporter: "none"}},
		"sampler":             {endpoint: collector, ratio: -1, env: map[string]string{varSampler: "parentbased_traceidratio", varArgument: "0.25"}, want: Settings{collector + "/v1/traces", .25}},
		"sampler off":         {endpoint: collector, ratio: -1, env: map[string]string{varSampler: "always_off"}, want: Settings{collector + "/v1/traces", 0}},
		"flag over sampler":   {endpoint: collector, ratio: .5, env: map[string]string{varSampler: "always_off"}, want: Settings{collector + "/v1/traces", .5}},
		"no address":          {endpoint: "collector:4318", says: "http://localhost:4318"},
		"no address variable": {ratio: -1, env: map[string]string{varEndpoint: "collector:4318"}, says: varEndpoint},
		"no address traces":   {ratio: -1, env: map[string]string{varTraces: "/t"}, says: varTraces},
		"ratio":               {ratio: 1.01, says: "between 0 and 1"},
		"no ratio":            {ratio: math.NaN(), says: "between 0 and 1"},
		"unknown sampler":     {endpoint: collector, ratio: -1, env: map[string]string{varSampler: "jaeger_remote"}, says: "jaeger_remote"},
		"argument":            {endpoint: collector, ratio: -1, env: map[string]string{varSampler: "traceidratio", varArgument: "2"}, says: varArgument},
		"argument is no text": {endpoint: collector, ratio: -1, env: map[string]string{varSampler: "traceidratio", varArgument: "half"}, says: varArgument},
		"protocol":            {endpoint: collector, env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, says: `"grpc"`},
		"headers":             {endpoint: collector, env: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=1,secret"}, says: "OTEL_EXPORTER_OTLP_HEADERS"},
		"time limit":          {endpoint: collector, env: map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "1s"}, says: "OTEL_EXPORTER_OTLP_TIMEOUT"},
	} {
		got, err := Read(c.endpoint, c.ratio, func(name string) string { return c.env[name] })
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s: %v", name, err)
		case c.says == "" && (err != nil || got.Endpoint != c.want.Endpoint || got.Endpoint != "" && got != c.want):
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
