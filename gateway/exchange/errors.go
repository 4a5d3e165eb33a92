package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/apierr"
	"kith/graph/selections"
)

const (
	// MaxMessage is how long an error's message may be: validation quotes names
	// from the query.
	MaxMessage = 500

	// maxCauses is how many causes of errors one request may write to the log; a connection that stays open, then one a minute.
	maxCauses = 5

	// maxCause is how many bytes of one cause are logged: drivers quote their
	// input.
	maxCause = 2000
)

// Presenter decides what a client sees of an error: the sentence of an [apierr.Error], a mistake in
// the query in gqlgen's words, a fixed sentence if something cannot be reached or takes too long,
// and nothing of any other error.
func Presenter(logger *slog.Logger) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) *gqlerror.Error {
		shown := &gqlerror.Error{Path: graphql.GetPath(ctx)}
		if wrapper, ok := errors.AsType[*gqlerror.Error](err); ok {
			shown.Path, shown.Locations = wrapper.Path, wrapper.Locations
			if _, ok := argumentOf(ctx, wrapper.Path); ok {
				shown.Path = graphql.GetFieldContext(ctx).Path() // a path ends at a field
			}
		}
		if all, ok := errors.AsType[apierr.Refusals](err); ok {
			for _, one := range all[1:] {
				graphql.AddError(ctx, &gqlerror.Error{Err: one, Path: shown.Path, Locations: shown.Locations})
			}
			err = all[0]
		}
		known := explain(ctx, err)
		if known == nil {
			known = internal(ctx)
			logCause(ctx, logger, slog.LevelError, "masked error", err)
		} else if known.Code == apierr.CodeUnavailable {
			logCause(ctx, logger, slog.LevelWarn, "unavailable", err)
		}
		shown.Message = sentenceOf(known)
		shown.Extensions = known.Extensions()
		return shown
	}
}

// sentenceOf is the message of an error. The message of a suspension has the text of an operator, which has a bound of its
// own.
func sentenceOf(known *apierr.Error) string {
	if known.Reason == apierr.Suspended {
		return known.Message
	}
	return apierr.Shortened(known.Message, MaxMessage)
}

// explain finds the error that the client may see; nil if there is none. Once the time of the
// request is over, every failure is reported as a timeout.
func explain(ctx context.Context, err error) *apierr.Error {
	if known, ok := apierr.Of(err); ok {
		return known
	}
	failed := apierr.Failure(err)
	switch {
	case failed == nil:
		return explainMistake(ctx, err)
	case ctx.Err() == nil || failed.Reason == apierr.StoreCopied:
		return failed
	}
	return overdue(ctx)
}

// overdue says that an operation was ended before it was done.
func overdue(ctx context.Context) *apierr.Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return apierr.Cancelled.Error("the request was cancelled")
	}
	return apierr.TimeOver.Error("the request took too long")
}

// explainMistake finds the mistakes in a query that gqlgen itself found.
func explainMistake(ctx context.Context, err error) *apierr.Error {
	found, ok := errors.AsType[*gqlerror.Error](err)
	if !ok {
		return nil
	}
	switch code := found.Extensions["code"]; {
	case code == string(apierr.CodePersistedNotFound):
		again := apierr.DocumentNotFound.Error("%s", found.Message)
		again.Retryable = true
		return again
	case code == errcode.ParseFailed, code == errcode.ValidationFailed:
		return apierr.InvalidQuery.Error("%s", found.Message)
	case isHiddenSchema(ctx):
		return apierr.SchemaHidden.Error("introspection is switched off")
	}
	if name, ok := argumentOf(ctx, found.Path); ok {
		if null, ok := apierr.Of(selections.CheckNulls(graphql.GetFieldContext(ctx).Field.Field, graphql.GetOperationContext(ctx).Variables)); ok {
			return null // an enum, which gqlgen reads before refuseNulls
		}
		return apierr.InvalidValue.Error("argument %q: %s", name, found.Message).In(name)
	}
	return nil
}

// isHiddenSchema reports whether the field queries the schema while introspection
// is switched off.
func isHiddenSchema(ctx context.Context) bool {
	if !graphql.HasOperationContext(ctx) || !graphql.GetOperationContext(ctx).DisableIntrospection {
		return false
	}
	fc := graphql.GetFieldContext(ctx)
	return fc != nil && fc.Field.Field != nil && (fc.Field.Name == "__schema" || fc.Field.Name == "__type")
}

// argumentOf names the argument that an error is about, such as an Int that does
// not fit 32 bits. gqlgen has no type for these errors, but their path continues
// below the field with the argument's name.
func argumentOf(ctx context.Context, path ast.Path) (string, bool) {
	fc := graphql.GetFieldContext(ctx)
	if fc == nil || fc.Field.Field == nil || fc.Field.Definition == nil {
		return "", false
	}
	if fc.Args != nil {
		// The arguments were right: a failing field below this one may have the name of an argument, as
		// in relationship(to:) { to { … } }.
		return "", false
	}
	field := fc.Path()
	if len(path) <= len(field) {
		return "", false
	}
	name, ok := path[len(field)].(ast.PathName)
	return string(name), ok && fc.Field.Definition.Arguments.ForName(string(name)) != nil
}

func logCause(ctx context.Context, logger *slog.Logger, level slog.Level, message string, err error) {
	x := Of(ctx)
	x.logged.Do(func() {
		logger.Log(ctx, level, message, "request_id", x.ID, "error", apierr.Shortened(err.Error(), maxCause))
	})
}

// Firsts are the first different texts that come, which clients choose.
type Firsts struct {
	mu  sync.Mutex
	all map[string]bool
}

// Among reports whether a text is one of the first so many, and whether it comes for the first time.
func (f *Firsts) Among(text string, most int) (is, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is = f.all[text]
	if first = !is && len(f.all) < most; first {
		if f.all == nil {
			f.all = map[string]bool{}
		}
		f.all[text] = true
	}
	return is || first, first
}

// Masked is all that a client learns about a fault of the server.
const Masked = "something went wrong on the server"

// Recovery turns a panic below a resolver into an error of its field. A panic of gqlgen about a directive is the client's mistake.
func Recovery(logger *slog.Logger) func(context.Context, any) error {
	return func(ctx context.Context, reason any) error {
		if err := selections.NullDirective(reason); err != nil {
			return err
		}
		LogPanic(ctx, logger, reason)
		return internal(ctx)
	}
}

// LogPanic logs what a panic has said, and where. It counts among the causes of the request: a document has room for hundreds of fields that panic.
func LogPanic(ctx context.Context, logger *slog.Logger, reason any) {
	x := Of(ctx)
	x.logged.Do(func() {
		logger.ErrorContext(ctx, "panic", "request_id", x.ID, "reason", apierr.Shortened(fmt.Sprint(reason), maxCause), "stack", string(debug.Stack()))
	})
}

// internal is the masked error, with the request's id, by which its cause can be found.
func internal(ctx context.Context) *apierr.Error {
	err := apierr.ServerAtFault.Error(Masked)
	if id := RequestID(ctx); id != "" {
		err.Details = map[string]any{"requestId": id}
	}
	return err
}

// Refusal is a request that is not executed, with the reason.
type Refusal struct {
	Status int
	Err    error // an apierr.Error
}

// Refuse refuses a malformed request.
func Refuse(status int, format string, args ...any) *Refusal {
	return &Refusal{status, apierr.MalformedRequest.Error(format, args...)}
}

// Busy refuses a request, or a connection, that exceeds a bound.
func Busy(message string) *Refusal {
	return &Refusal{http.StatusServiceUnavailable, apierr.Overloaded.Error("%s", message)}
}

// Unknown refuses a request of which it is not known who sends it.
func Unknown(err error) *Refusal {
	status := http.StatusInternalServerError
	if known, ok := apierr.Of(err); ok {
		status = cmp.Or(map[apierr.Code]int{
			apierr.CodeUnauthenticated: http.StatusUnauthorized, apierr.CodeForbidden: http.StatusForbidden,
			apierr.CodeBadInput: http.StatusBadRequest, apierr.CodeUnavailable: http.StatusServiceUnavailable,
		}[known.Code], status)
	}
	return &Refusal{status, err}
}

// What exceeds a bound of all clients together.
const (
	TooManyRequests    = "the server is busy: try again soon"
	TooManyArriving    = "too many long requests are arriving: try again soon"
	TooManyAnswers     = "too many long answers wait for their clients: try again soon (a mutation has been done)"
	TooManyConnections = "there are too many open connections at the moment"
)

// AsGraphQL is an error as clients see it.
func AsGraphQL(err error) *gqlerror.Error {
	known, ok := apierr.Of(err)
	if !ok {
		known = apierr.ServerAtFault.Error(Masked)
	}
	return &gqlerror.Error{Message: sentenceOf(known), Extensions: known.Extensions()}
}
