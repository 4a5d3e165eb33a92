package traces

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Settings say where spans are sent, and which are made.
type Settings struct {
	Endpoint string  // the address that spans are posted to; "": traces are off
	Ratio    float64 // of the operations whose callers do not say whether they are sampled
}

// The variables of OpenTelemetry that are read here. [newExporter] reads those of headers, certificates, compression and time limits, the
// library those of the queue.
const (
	varDisabled  = "OTEL_SDK_DISABLED"
	varExporter  = "OTEL_TRACES_EXPORTER"
	varEndpoint  = "OTEL_EXPORTER_OTLP_ENDPOINT"
	varTraces    = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	varSampler   = "OTEL_TRACES_SAMPLER"
	varArgument  = "OTEL_TRACES_SAMPLER_ARG"
	pathOfTraces = "/v1/traces"
)

// Read finds the settings in OpenTelemetry's variables.
func Read(env func(string) string) (s Settings, err error) {
	name := varTraces
	switch {
	case env(varDisabled) == "true", env(varExporter) == "none":
		return s, nil
	case env(varTraces) != "":
		s.Endpoint = env(varTraces)
	case env(varEndpoint) != "":
		name, s.Endpoint = varEndpoint, strings.TrimRight(env(varEndpoint), "/")+pathOfTraces
	default:
		return s, nil
	}
	if !isAddress(s.Endpoint) {
		return s, fmt.Errorf("%s: it has to be the address of a collector, such as http://localhost:4318", name)
	}
	if err := check(env); err != nil {
		return s, err
	}
	s.Ratio, err = ratioOf(env(varSampler), env(varArgument))
	return s, err
}

// isAddress reports whether a text is the address of a collector.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

// check refuses variables that the library would log and ignore.
func check(env func(string) string) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if value := env(name); value != "" && value != "http/protobuf" {
			return fmt.Errorf("%s: Kith speaks http/protobuf only, not %q", name, value)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"} {
		for pair := range strings.SplitSeq(env(name), ",") {
			key, value, ok := strings.Cut(pair, "=")
			if _, err := url.PathUnescape(value); strings.TrimSpace(pair) != "" && (!ok || strings.TrimSpace(key) == "" || err != nil) {
				return fmt.Errorf("%s: it has to be name=value,name=value", name) // it may hold secrets
			}
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"} {
		if n, err := strconv.Atoi(env(name)); env(name) != "" && (err != nil || n <= 0) {
			return fmt.Errorf("%s: it has to be a number greater than 0", name)
		}
	}
	return nil
}

var samplers = []string{"", "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}

// ratioOf is the ratio that OTEL_TRACES_SAMPLER means. The decision of a caller counts in any case.
func ratioOf(sampler, argument string) (float64, error) {
	if !slices.Contains(samplers, sampler) {
		return 0, fmt.Errorf("%s: %q is none of %s", varSampler, sampler, strings.Join(samplers[1:], ", "))
	}
	switch {
	case strings.HasSuffix(sampler, "always_off"):
		return 0, nil
	case argument != "" && (sampler == "" || strings.HasSuffix(sampler, "traceidratio")): // the argument alone is a ratio as well
		ratio, err := strconv.ParseFloat(argument, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return 0, fmt.Errorf("%s: it has to be between 0 and 1", varArgument)
		}
		return ratio, nil
	}
	return 1, nil
}
