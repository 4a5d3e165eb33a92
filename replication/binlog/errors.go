package binlog

import (
	"errors"
	"fmt"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"kith/replication/binlog/replica"
	"kith/storage/doctor"
)

// A StopError ends the replication of a server: if it went on, `follower` would fall behind
// unnoticed.
type StopError struct {
	Server string // host:port
	GTID   string // of the transaction; empty if the server's set-up is the reason
	What   string // what cannot be followed, with the statement or the variable
	Remedy string // what to do about it
}

// Error reports all of it.
func (e *StopError) Error() string {
	where := "replication of " + e.Server + " is stopped"
	if e.GTID != "" {
		where += " at transaction " + e.GTID
	}
	return where + ": " + e.What + "; " + e.Remedy
}

// errHistory means that the server's binlog does not continue what has been read:
// it was purged, or the server was reset or replaced.
var errHistory = errors.New("the binlog does not continue the checkpoint")

// errLostLock means that another replicator may be working now.
var errLostLock = errors.New("the lock on the server is lost")

// errNobody is what a process that only watches reports.
var errNobody = errors.New("no replicator works on the server")

// The numbers of errors by which servers refuse.
const (
	cannotReadBinlog = 1236
	mayNot           = 1227
	readOnly         = 1290
)

// streamError classifies the error that ended a stream of events.
func (s *server) streamError(err error) error {
	var e *driver.MySQLError
	switch {
	case doctor.IsError(err, mayNot):
		return s.noGrant(err)
	case errors.Is(err, replica.ErrUnknown):
		return &StopError{Server: s.name, What: err.Error(), Remedy: "use a newer Kith, or an older server"}
	case errors.As(err, &e) && e.Number == cannotReadBinlog:
		if torn := s.torn(e); torn != nil {
			return torn
		}
		// The server also reports this to the older of two replicas with one id, and for a packet
		// too large.
		if !strings.Contains(e.Message, "same server") && !strings.Contains(e.Message, "max_allowed_packet") {
			return fmt.Errorf("%w: %w", errHistory, err)
		}
	}
	return err
}

func (s *server) noGrant(cause error) *StopError {
	return &StopError{
		Server: s.name,
		What:   fmt.Sprintf("user %s may not read the binlog (%v)", s.dsn.User, cause),
		Remedy: fmt.Sprintf("run: GRANT REPLICATION SLAVE ON *.* TO %s", s.account()),
	}
}
