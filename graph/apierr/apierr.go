// Package apierr holds the errors that clients may see: a code for
// programs and a sentence for users. The gateway masks every other error.
package apierr

import (
	"errors"
	"fmt"
	"maps"
)

// A Code says what kind of error it is, in `extensions.code`. The list is closed.
type Code string

// The codes, as the schema's contract names them.
const (
	CodeBadInput        Code = "BAD_USER_INPUT"
	CodeNotFound        Code = "NOT_FOUND"
	CodeUnauthenticated Code = "UNAUTHENTICATED"
	CodeForbidden       Code = "FORBIDDEN"
	CodeLimitReached    Code = "LIMIT_REACHED"
	CodeRateLimited     Code = "RATE_LIMITED"
	CodeTooCostly       Code = "QUERY_TOO_COSTLY"
	CodeTimeout         Code = "TIMEOUT"
	CodeUnavailable     Code = "UNAVAILABLE"
	CodeInternal        Code = "INTERNAL_SERVER_ERROR"
)

// Error is an error for the client. It may be wrapped on its way up: the
// wrapping goes to the log only.
type Error struct {
	Code      Code
	Message   string         // one plain sentence, lower-case
	Retryable bool           // whether the same request may succeed later
	Details   map[string]any // further entries of `extensions`; may be nil
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Message }

// Extensions returns what goes beside the message: code, retryable and the details.
func (e *Error) Extensions() map[string]any {
	ext := make(map[string]any, len(e.Details)+2)
	maps.Copy(ext, e.Details)
	ext["code"] = string(e.Code)
	ext["retryable"] = e.Retryable
	return ext
}

// Of finds the client's error in a chain.
func Of(err error) (*Error, bool) { return errors.AsType[*Error](err) }

// BadInput: the request, or a cursor in it, says something that cannot be right.
func BadInput(format string, args ...any) error { return newError(CodeBadInput, format, args) }

// NotFound: the subject of the request does not exist.
func NotFound(format string, args ...any) error { return newError(CodeNotFound, format, args) }

// Unauthenticated: the request needs a viewer, but nobody is signed in.
func Unauthenticated(format string, args ...any) error {
	return newError(CodeUnauthenticated, format, args)
}

// Forbidden: the viewer may not do this.
func Forbidden(format string, args ...any) error { return newError(CodeForbidden, format, args) }

// LimitReached: the number that a rule allows has been reached.
func LimitReached(format string, args ...any) error { return newError(CodeLimitReached, format, args) }

// RateLimited: too many requests of this kind for now; retryable.
func RateLimited(format string, args ...any) error {
	err := newError(CodeRateLimited, format, args)
	err.Retryable = true
	return err
}

// TooCostly: the query asks for more than one request may cost. Cost and limit
// are in the unit that the sentence names, and go into the extensions.
func TooCostly(cost, limit uint64, format string, args ...any) error {
	err := newError(CodeTooCostly, format, args)
	err.Details = map[string]any{"cost": cost, "limit": limit}
	return err
}

// Unavailable: a part of the data cannot be reached; retryable.
func Unavailable(format string, args ...any) error {
	err := newError(CodeUnavailable, format, args)
	err.Retryable = true
	return err
}

// Copied: the store takes no writes any more, unless kith shards abort gives the copy up.
func Copied() *Error {
	return newError(CodeUnavailable, "nothing can be changed here any more: the data has been copied to another store", nil)
}

// Internal: a fault of the server. The sentence must reveal nothing about it; the log has its
// cause.
func Internal(format string, args ...any) error { return newError(CodeInternal, format, args) }

func newError(code Code, format string, args []any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
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
