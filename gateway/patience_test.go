package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"kith/gateway"
	"kith/internal/check"
)

// TestCallersDeadline: fields that are missing when the caller's time ends become errors, as when the gateway's time ends.
func TestCallersDeadline(t *testing.T) {
	s := serve(t, gateway.Config{RequestTimeout: time.Hour})
	const late = `"hello":"world`
	for _, header := range []string{"grpc-timeout: 20m", "grpc-timeout: 20000u", "X-Request-Timeout: 20", "X-Request-Timeout: 20ms", "x-request-timeout: 0.02s"} {
		name, value, _ := strings.Cut(header, ": ")
		s.query("{ hello wait }", name, value).is(t, header, 200, "TIMEOUT", late)
	}
	s.query("{ hello wait }", "grpc-timeout", "1H", "X-Request-Timeout", "20").is(t, "the shorter of two", 200, "TIMEOUT", late)
	s.query("{ hello }", "X-Request-Timeout", "1h").is(t, "in time", 200, "")
	check.Equal(t, "answers that were late", s.value("kith_graphql_caller_timeouts_total"), 6)
	stream := s.query("{ wait }", "Accept", "text/event-stream", "X-Request-Timeout", "20")
	check.Has(t, "a stream", stream.text, `"code":"TIMEOUT"`)
	check.Equal(t, "answers that were late", s.value("kith_graphql_caller_timeouts_total"), 7)
}

// TestCallersDeadlineIsNeverLater than the gateway's own.
func TestCallersDeadlineIsNeverLater(t *testing.T) {
	s := serve(t, gateway.Config{RequestTimeout: 20 * time.Millisecond})
	for _, header := range []string{"grpc-timeout: 99999999H", "grpc-timeout: 5S", "X-Request-Timeout: 9223372036854775807", "X-Request-Timeout: 2540400h"} {
		name, value, _ := strings.Cut(header, ": ")
		s.query("{ wait }", name, value).is(t, header, 200, "TIMEOUT")
	}
	check.Equal(t, "of the callers' times", s.value("kith_graphql_caller_timeouts_total"), 0)
}

// TestATimeThatIsOverBeforeTheWorkBegins leaves gqlgen without an answer. The client has one all the same, over every transport.
func TestATimeThatIsOverBeforeTheWorkBegins(t *testing.T) {
	s := serve(t, gateway.Config{RequestTimeout: 20 * time.Millisecond, PerRequest: func(ctx context.Context) context.Context {
		<-ctx.Done()
		return ctx
	}})
	const late = `{"errors":[{"message":"the request took too long","extensions":{"code":"TIMEOUT"`
	s.query("{ hello }").is(t, "plain HTTP", 200, "TIMEOUT", late)
	check.Has(t, "a stream", s.query("{ hello }", "Accept", "text/event-stream").text, "event: next\ndata: "+late, "event: complete")
	c := s.joined()
	c.subscribe("a", "{ hello }")
	c.reads(`{"id":"a","type":"next","payload":` + late)
	c.expect(`{"id":"a","type":"complete"}`)
}

func TestMalformedDeadlines(t *testing.T) {
	s := serve(t, gateway.Config{})
	for _, header := range []string{
		"grpc-timeout: ", "grpc-timeout: 5", "grpc-timeout: S", "grpc-timeout: 5s", "grpc-timeout: 123456789m", "grpc-timeout: -1S",
		"grpc-timeout: +1S", "grpc-timeout: 0S", "grpc-timeout: 1.5S",
		"X-Request-Timeout: ", "X-Request-Timeout: soon", "X-Request-Timeout: 0", "X-Request-Timeout: 0s", "X-Request-Timeout: -5", "X-Request-Timeout: -5s",
		"X-Request-Timeout: +5s", "X-Request-Timeout: 1.5", "X-Request-Timeout: 9223372036854775808", "X-Request-Timeout: 1" + strings.Repeat("0", 40) + "ns",
		"X-Request-Timeout: " + strings.Repeat("0", 32) + "1",
	} {
		name, value, _ := strings.Cut(header, ": ")
		got := s.query("{ hello }", name, value)
		got.is(t, header, 400, "BAD_USER_INPUT")
		check.Has(t, header, strings.ToLower(got.text), strings.ToLower(name))
	}
	r := s.request("POST", "/graphql", `{"query":"{hello}"}`, "Content-Type", "application/json", "X-Request-Timeout", "5")
	r.Header.Add("X-Request-Timeout", "6")
	s.do(r).is(t, "two times", 400, "BAD_USER_INPUT")
}
