// Package apierr holds the errors that clients may see: a code and a reason for
// programs and a sentence for users. The gateway masks every other error.
package apierr

import (
	"context"
	"errors"
	"maps"
	"math"
	"strings"
	"time"

	"kith/storage"
)

// A Code says what kind of error it is, in `extensions.code`. The list is closed.
type Code string

// The codes, as the schema's enum ErrorCode names them.
const (
	CodeBadInput          Code = "BAD_USER_INPUT"
	CodeNotFound          Code = "NOT_FOUND"
	CodeUnauthenticated   Code = "UNAUTHENTICATED"
	CodeNotRegistered     Code = "NOT_REGISTERED"
	CodeForbidden         Code = "FORBIDDEN"
	CodeLimitReached      Code = "LIMIT_REACHED"
	CodeRateLimited       Code = "RATE_LIMITED"
	CodeTooCostly         Code = "QUERY_TOO_COSTLY"
	CodeTimeout           Code = "TIMEOUT"
	CodeUnavailable       Code = "UNAVAILABLE"
	CodeInternal          Code = "INTERNAL_SERVER_ERROR"
	CodePersistedNotFound Code = "PERSISTED_QUERY_NOT_FOUND" // a step of the protocol of persisted queries, which clients expect
	CodeSnapshotNeeded    Code = "SNAPSHOT_NEEDED"
)

// Error is an error for the client, made by [Reason.Error]. It may be wrapped on its way up: the
// wrapping goes to the log only.
type Error struct {
	Code      Code
	Reason    Reason
	Argument  string         // the name of the argument that is refused; may be empty
	Message   string         // one plain sentence, lower-case
	Retryable bool           // whether the same request may succeed later
	Details   map[string]any // further entries of `extensions`; may be nil
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Message }

// In names the argument that is refused.
func (e *Error) In(argument string) *Error {
	own := *e // it may be a variable
	own.Argument = argument
	return &own
}

// In is an error about an argument: if a check has refused the value, which may have another name there, the error names the argument.
func In(argument string, err error) error {
	known, ok := Of(err)
	if !ok || known.Code != CodeBadInput {
		return err
	}
	return known.In(argument)
}

// After adds the seconds until the same request may succeed.
func (e *Error) After(wait time.Duration) *Error {
	own := *e
	own.Details = map[string]any{"retryAfter": int(math.Ceil(wait.Seconds()))}
	return &own
}

// Over adds what a query costs, and the limit, in the unit that the sentence names.
func (e *Error) Over(cost, limit uint64) *Error {
	e.Details = map[string]any{"cost": cost, "limit": limit}
	return e
}

// Extensions returns what goes beside the message: code, reason, argument, retryable and the details.
func (e *Error) Extensions() map[string]any {
	ext := make(map[string]any, len(e.Details)+4)
	maps.Copy(ext, e.Details)
	ext["code"], ext["reason"], ext["retryable"] = string(e.Code), string(e.Reason), e.Retryable
	if e.Argument != "" {
		ext["argument"] = e.Argument
	}
	return ext
}

// Of finds the client's error in a chain.
func Of(err error) (*Error, bool) { return errors.AsType[*Error](err) }

// Refusals are the errors of several arguments of a field: the client is told each of them.
type Refusals []error

// Error returns the sentences.
func (r Refusals) Error() string { return strings.ReplaceAll(errors.Join(r...).Error(), "\n", "; ") }

// Unwrap returns the errors, for [errors.Is] and [errors.As].
func (r Refusals) Unwrap() []error { return r }

// All is the error of the checks of several arguments: nil if all of them are nil.
func All(checks ...error) error {
	var found Refusals
	for _, err := range checks {
		if several, ok := errors.AsType[Refusals](err); ok {
			found = append(found, several...)
		} else if err != nil {
			found = append(found, err)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	default:
		return found
	}
}

// Failure is what a client sees of a failure of a store; nil if it sees nothing of it.
func Failure(err error) *Error {
	switch {
	case errors.Is(err, storage.ErrCopied): // unless kith shards abort gives the copy up
		return StoreCopied.Error("nothing can be changed here any more: the data has been copied to another store")
	case errors.Is(err, storage.ErrUnavailable):
		return Unreachable.Error("a part of the data cannot be reached at the moment")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return TimeOver.Error("the request took too long")
	}
	return nil
}

// Shortened cuts a text to at most limit bytes, between characters: a message must not grow with
// the client's input.
func Shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return text[:limit] + "…"
}
