package resolvers

import (
	"errors"

	"kith/graph/apierr"
	"kith/storage"
)

// markError turns the refusal of a mark into the client's error.
func markError(err error) error {
	switch {
	case errors.Is(err, storage.ErrNotFollowing):
		return apierr.NotFound("you do not follow this user")
	case errors.Is(err, storage.ErrLimitReached):
		return apierr.LimitReached("you follow as many users specially as one may, which is %d", storage.MaxSpecials)
	}
	return err
}
