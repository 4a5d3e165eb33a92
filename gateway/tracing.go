package gateway

import (
	"net/http"

	"github.com/99designs/gqlgen/graphql"

	"kith/gateway/traces"
	"kith/graph/apierr"
)

// headerTrace tells the caller of a traced request what its span is (W3C Trace Context, level 2).
const headerTrace = "Traceresponse"

// traced gives each request to /graphql a span, which lasts from before the caller is identified until the answer is
// written. Operations of WebSockets have spans of their own, see [streams.runOnce]; subscriptions have none: they last for
// hours.
func traced(t *traces.Traces, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions || upgrades(r) {
			next.ServeHTTP(w, r)
			return
		}
		x := exchangeOf(r.Context())
		if x.span = t.Request(r.Header); x.span == nil {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set(headerTrace, x.span.Response())
		sent := &recorder{ResponseWriter: w}
		defer func() {
			if x.span == nil {
				return // it was a subscription
			}
			x.span.HTTP(traces.Request{ID: x.id, Method: r.Method, Path: r.URL.Path, Status: sent.status})
			x.span.Outcome(string(x.outcome), x.outcome.isFailure())
			x.span.End()
		}()
		next.ServeHTTP(sent, r)
	})
}

// describe tells a span what is executed.
func describe(span *traces.Span, op *graphql.OperationContext, cost uint64) {
	if span != nil {
		span.Operation(traces.Operation{
			Type: string(op.Operation.Operation), Name: apierr.Shortened(op.Operation.Name, 100), Text: op.RawQuery, Cost: cost,
		})
	}
}

// wasKnown reports whether an operation was made without parsing its document.
func wasKnown(op *graphql.OperationContext) bool {
	return op != nil && op.Stats.Validation.End.IsZero()
}

// isFailure reports whether there are errors in an answer. A refused request is a mistake of its client, and a cancelled request
// is no failure.
func (o outcome) isFailure() bool {
	return o == outcomePartial || o == outcomeError || o == outcomeTimeout
}
