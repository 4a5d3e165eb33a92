package db

import (
	"strings"

	"kith/storage/doctor"
)

// tiDBDialect is MySQL's, as TiDB speaks it. A part of a statement that only TiDB should read is in
// its own executable comment, `/*T! … */`.
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
			doctor.IsError(err, 1105) && strings.Contains(err.Error(), "pessimistic lock retry limit reached") // one number for many errors
	}
	d.unavailable = func(err error) bool {
		return isServersFault(err) || d.retryable(err) ||
			doctor.IsError(err, 9001, 9002, 9003, 9004, 9005) // of PD and TiKV: no answer, busy, regions out of reach
	}
	return &d
}
