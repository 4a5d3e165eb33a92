package social

import (
	"errors"
	"fmt"

	"kith/storage"
)

// nobody is HiddenUsers without any user.
type nobody struct{}

func (nobody) Has(storage.UserID) bool { return false }
func (nobody) IDs() []storage.UserID   { return nil }

// Gone reports that the acting user does not exist, as opposed to the other one.
type Gone struct{ User storage.UserID }

func (g Gone) Error() string { return fmt.Sprintf("user %s is gone", g.User) }

// Unwrap makes it a [storage.ErrUserUnknown].
func (Gone) Unwrap() error { return storage.ErrUserUnknown }

// gone makes an error that names the user whom the store does not know.
func gone(user storage.UserID, err error) error {
	if errors.Is(err, storage.ErrUserUnknown) {
		return fmt.Errorf("%w: %w", Gone{user}, err)
	}
	return err
}
