package db

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"kith/storage"
)

// TestErrorsOfTiDB: which errors are tried again, and which ones say that the store is out of reach.
func TestErrorsOfTiDB(t *testing.T) {
	for _, c := range []struct {
		number               uint16
		message              string
		retried, unavailable bool
	}{
		{1213, "Deadlock found when trying to get lock", true, true},
		{1105, "pessimistic lock retry limit reached", true, true},
		{1105, "unknown column type", false, false},
		{8002, "can not retry select for update statement", true, true},
		{8022, "KV error safe to retry", true, true},
		{8028, "Information schema is changed", true, true},
		{9007, "Write conflict", true, true},
		{9001, "PD server timeout", false, true},
		{9005, "Region is unavailable", false, true},
		{1064, "You have an error in your SQL syntax", false, false},
	} {
		err := fmt.Errorf("write: %w", &mysql.MySQLError{Number: c.number, Message: c.message})
		if got := tiDBDialect.retryable(err); got != c.retried {
			t.Errorf("%d %s is tried again: %v", c.number, c.message, got)
		}
		if got := errors.Is(tiDBDialect.StorageError(t.Context(), err), storage.ErrUnavailable); got != c.unavailable {
			t.Errorf("%d %s means unavailable: %v", c.number, c.message, got)
		}
	}
}
