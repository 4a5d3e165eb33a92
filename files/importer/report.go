package importer

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// ErrMalformed: a line cannot be read and the import is strict.
var ErrMalformed = errors.New("malformed line")

// Report counts the outcomes of the lines. If an import was continued, it covers all of it.
type Report struct {
	Lines        int64         `json:"lines"` // of edge lists, comments and empty ones included, and records of users files
	UsersMade    int64         `json:"usersMade"`
	UsersExisted int64         `json:"usersExisted"` // of users files; nothing of them is changed
	Edges        int64         `json:"edges"`        // written
	Beside       int64         `json:"beside"`       // marks, messages, lists and entries of the moderation log that were written
	Posts        int64         `json:"posts"`        // written, deleted ones included
	FuturePosts  int64         `json:"futurePosts"`  // of these files, whether written or not: home feeds have them when their time has come
	Comments     int64         `json:"comments"`     // written
	Favorites    int64         `json:"favorites"`    // written, ended ones included
	Relations    int64         `json:"relations"`    // written, ended ones included
	Identities   int64         `json:"identities"`   // linked
	Duplicates   int64         `json:"duplicates"`   // whose pair came earlier in this import
	Existed      int64         `json:"existed"`      // whose row was there already, tombstones and blocks included
	SelfFollows  int64         `json:"selfFollows"`
	Malformed    int64         `json:"malformed"`
	Refused      int64         `json:"refused"` // lines of users whose handle another user has, of edges of users that could not be created, and of what belongs to nothing
	Elapsed      time.Duration `json:"elapsed"`

	// Unnamed are the edge lists with names in their headers that do not say what is in the columns, and these names. Such columns are
	// taken for from, to and time, in this order.
	Unnamed string `json:"unnamedColumns,omitempty"`

	// Resumable reports whether importing the same files again continues from here. If not, it
	// starts over, which is harmless.
	Resumable bool `json:"-"`
}

// Handled is how many edges the store has handled, in one way or another.
func (r Report) Handled() int64 { return r.Edges + r.Duplicates + r.Existed }

// empty reports whether the store holds nothing of what the lines say.
func (r Report) empty() bool {
	return r.Edges+r.Beside+r.Posts+r.Comments+r.Favorites+r.Relations+r.Identities+r.Existed+r.UsersMade+r.UsersExisted == 0
}

// EdgesPerSecond is the rate over the whole import.
func (r Report) EdgesPerSecond() float64 { return rate(r.Handled(), r.Elapsed) }

func rate(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// add adds numbers of lines, and times.
func (r *Report) add(d Report) {
	sums, more := reflect.ValueOf(r).Elem(), reflect.ValueOf(d)
	for i := range sums.NumField() {
		if sum := sums.Field(i); sum.CanInt() {
			sum.SetInt(sum.Int() + more.Field(i).Int())
		}
	}
}

// Progress is how far an import is after a chunk.
type Progress struct {
	Report
	Resumed        bool    // whether an earlier run began it
	Bytes          int64   // of the files, as they are on disk, that have been imported
	TotalBytes     int64   // of all files; 0 if one of them is not a regular file
	EdgesPerSecond float64 // of this run
}

// Problem is a line that could not be imported.
type Problem struct {
	File   string
	Line   int64 // from 1
	Reason error
	Text   string // the beginning of the line, quoted; empty when it says nothing more
}

// String is one line for users: file:line: reason: text.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d: %v", p.File, p.Line, p.Reason)
	if p.Text != "" {
		s += ": " + p.Text
	}
	return s
}

const maxExcerpt = 60

// excerpt quotes the beginning of a line, so that it fits in a message and cannot
// disturb a terminal.
func excerpt(line []byte) string {
	line = bytes.TrimRight(line, " \t\r\n")
	switch {
	case len(line) == 0:
		return ""
	case len(line) > maxExcerpt:
		return strconv.QuoteToASCII(string(line[:maxExcerpt])) + "…"
	}
	return strconv.QuoteToASCII(string(line))
}
