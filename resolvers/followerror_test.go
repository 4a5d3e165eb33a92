package resolvers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"kith/graph/apierr"
	"kith/storage"
)

// A gateway that stands still for long finds the time of its requests over when it goes on.
func TestFollowsThatWereNotMadeSayWhy(t *testing.T) {
	for code, err := range map[apierr.Code]error{
		apierr.CodeTimeout:     fmt.Errorf("write: %w", context.DeadlineExceeded),
		apierr.CodeUnavailable: fmt.Errorf("write: %w", storage.ErrUnavailable),
		apierr.CodeInternal:    errors.New("another"),
	} {
		if got := followError("userIds", err); got.Code != code || got.Argument != nil {
			t.Errorf("%v: %s, not %s", err, got.Code, code)
		}
	}
}
