package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"kith/graph/apierr"
	"kith/graph/selections"
)

// masked is all that a client learns about a fault of the server.
const masked = "something went wrong on the server"

// recovering answers a request whose handler panicked outside of GraphQL.
func recovering(logger *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch reason := recover(); reason {
			case nil:
			case http.ErrAbortHandler: // the way to cut a connection on purpose
				panic(reason)
			default:
				logPanic(r.Context(), logger, reason)
				http.Error(w, masked, http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// recoverFunc turns a panic below a resolver into an error of its field. A panic of gqlgen about a directive is the client's mistake.
func recoverFunc(logger *slog.Logger) func(context.Context, any) error {
	return func(ctx context.Context, reason any) error {
		if err := selections.NullDirective(reason); err != nil {
			return err
		}
		logPanic(ctx, logger, reason)
		return internal(ctx)
	}
}

func logPanic(ctx context.Context, logger *slog.Logger, reason any) {
	logger.ErrorContext(ctx, "panic",
		"request_id", RequestID(ctx), "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
}

// internal is the masked error, with the request's id, by which its cause can be found.
func internal(ctx context.Context) *apierr.Error {
	err := &apierr.Error{Code: apierr.CodeInternal, Message: masked}
	if id := RequestID(ctx); id != "" {
		err.Details = map[string]any{"requestId": id}
	}
	return err
}
