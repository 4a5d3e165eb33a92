package db

import (
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"

	"kith/storage/doctor"
)

// tiDBDialect is MySQL's, as TiDB speaks it. What only TiDB should read in a statement is in its
// own executable comment, `/*T! … */`.
var tiDBDialect = tiDBOf(*mysqlDialect)

func tiDBOf(d Dialect) *Dialect {
	d.HasBinlog = false
	d.Moves = false
	d.ScansSubqueries = true
	d.WaitsByTrying = true
	d.retryable = func(err error) bool {
		return lostRace(err) ||
			doctor.IsError(err, 8002, 8022, 9007) || // another transaction wrote the row
			doctor.IsError(err, 8028) || // a table's definition has changed
			doctor.IsError(err, 1105) && strings.Contains(messageOf(err), "pessimistic lock retry limit reached")
	}
	d.unavailable = func(err error) bool {
		return isServersFault(err) || d.retryable(err) ||
			doctor.IsError(err, 9001, 9002, 9003, 9004, 9005) // of PD and TiKV: no answer, busy, regions out of reach
	}
	return &d
}

// messageOf is what the server says: TiDB has one number for many errors.
func messageOf(err error) string {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return ""
	}
	return e.Message
}
