package db

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"kith/internal/check"
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
		check.Equal(t, c.message, tiDBDialect.retryable(err), c.retried)
		check.Equal(t, c.message, errors.Is(tiDBDialect.StorageError(t.Context(), err), storage.ErrUnavailable), c.unavailable)
	}
}
