package binlog

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"kith/replication/binlog/replica"
)

// A server that is killed while it writes an event leaves the beginning of that event at the end of the file. MySQL
// cuts it off when it starts again; MariaDB leaves it there, and begins another file. From then on each stream
// that comes to the end of the torn file ends there with an error, whatever position was asked for. The
// transaction of the torn event was not committed: a server commits after it has written the last event. So
// nothing is missing, and reading goes on in the next file.

// tornError means that a file ends within an event.
type tornError struct {
	file  string
	cause error
}

func (e *tornError) Error() string { return e.cause.Error() }

// tornFile finds the file in the server's error 1236.
var tornFile = regexp.MustCompile(`binlog truncated in the middle of event.* the last event read from '([^']+)'`)

// torn returns the error of a torn file, or nil if the server says something else. Only MariaDB's files end so
// without damage.
func (s *server) torn(e *driver.MySQLError) error {
	found := tornFile.FindStringSubmatch(e.Message)
	if found == nil || s.flavor != mariaDB {
		return nil
	}
	return &tornError{file: path.Base(found[1]), cause: e}
}

// pastTorn reads on after torn files.
func (t *tail) pastTorn(ctx context.Context, err error, to sink) error {
	for {
		var torn *tornError
		if !errors.As(err, &torn) {
			return err
		}
		next, known := fileAfter(torn.file)
		if !known {
			return fmt.Errorf("%w: %w", errHistory, err)
		}
		t.server.log().Warn("replication: a binlog file ends in the middle of an event, as after a crash of the server: continuing with the next file",
			"file", torn.file, "next", next)
		err = t.stream(ctx, replica.Start{File: next}, false, to)
	}
}

// fileAfter is the name of the file that a server begins after another: the number at its end is one higher.
// Asking the server would need one more privilege.
func fileAfter(name string) (next string, known bool) {
	dot := strings.LastIndexByte(name, '.')
	number, err := strconv.ParseUint(name[dot+1:], 10, 32)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%s%0*d", name[:dot+1], len(name)-dot-1, number+1), true
}

// begins checks that everything before a file has been read. A file of MariaDB lists that at its beginning.
func (t *tail) begins(list replica.Event) error {
	before, err := list.Last()
	if read := t.at.set(); err == nil && !read.Contains(before) {
		return fmt.Errorf("%w: %s has been read, the next file begins after %s", errHistory, read, before)
	}
	return err
}
