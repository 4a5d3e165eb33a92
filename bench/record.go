package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"kith/storage"
)

// Recorder keeps every request of a subject's loads with the response to it, in compressed files. If
// an answer is wrong, they tell its history: what was asked and written about the same users before and
// after it.
type Recorder struct {
	folder string
	began  time.Time

	mu     sync.Mutex
	tracks []*track
}

// NewRecorder makes a recorder that keeps its files in a new folder within a folder; "" is the system's for
// temporary files.
func NewRecorder(within string) (*Recorder, error) {
	folder, err := os.MkdirTemp(within, "kith-recorded-")
	return &Recorder{folder: folder, began: time.Now()}, err
}

// Close removes the files.
func (r *Recorder) Close() error { return os.RemoveAll(r.folder) }

// track begins the file of one connection. A nil Recorder keeps nothing.
func (r *Recorder) track() (*track, error) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	file, err := os.Create(filepath.Join(r.folder, strconv.Itoa(len(r.tracks))))
	if err != nil {
		return nil, err
	}
	t := &track{began: r.began, file: file, out: s2.NewWriter(file, s2.WriterConcurrency(1), s2.WriterBlockSize(256<<10))}
	r.tracks = append(r.tracks, t)
	return t, nil
}

// track is what one connection has asked, a line for each request.
type track struct {
	began time.Time
	file  *os.File
	out   *s2.Writer
	line  []byte
	err   error // the first failure to write
}

// note writes a line. by is the user who asks or is asked about.
func (t *track) note(sent time.Time, took time.Duration, by storage.UserID, request []byte, status int, response []byte, wrong error) {
	if t == nil {
		return
	}
	l := strconv.AppendInt(append(t.line[:0], `{"at":`...), sent.Sub(t.began).Microseconds(), 10)
	l = strconv.AppendInt(append(l, `,"took":`...), took.Microseconds(), 10)
	l = strconv.AppendInt(append(l, `,"by":"`...), int64(by), 10)
	l = strconv.AppendInt(append(l, `","status":`...), int64(status), 10)
	l = append(append(l, `,"request":`...), request...)
	if l = append(l, `,"response":`...); bytes.HasPrefix(response, []byte("{")) {
		l = append(l, bytes.TrimSpace(response)...)
	} else {
		text, _ := json.Marshal(string(response))
		l = append(l, text...)
	}
	if wrong != nil {
		text, _ := json.Marshal(wrong.Error())
		l = append(append(l, `,"wrong":`...), text...)
	}
	l = append(l, "}\n"...)
	t.line = l
	if _, err := t.out.Write(t.line); t.err == nil {
		t.err = err
	}
}

func (t *track) close() error {
	if t == nil {
		return nil
	}
	return errors.Join(t.err, t.out.Close(), t.file.Close())
}

// recorded is a line that belongs to a history.
type recorded struct {
	at   int64
	line []byte
}

// mostExplained is how many wrong answers have their histories written.
const mostExplained = 20

var (
	ids = regexp.MustCompile(`"([0-9]+)"`)
	at  = regexp.MustCompile(`^\{"at":(-?[0-9]+)`)
)

// History writes the history of the wrong answers to a new file in a folder ("" as for [NewRecorder]), in the order of
// time: all requests about the users who were asked about, and all writes that concern anybody who was ever in an answer
// to the same request. It returns the file's path. It must not be called while a load runs.
func (r *Recorder) History(folder string) (path string, err error) {
	asked, shown := map[string]bool{}, map[string]bool{}
	var requests [][]byte
	err = r.each(func(l []byte) {
		if wrong := bytes.Contains(l, []byte(`,"wrong":`)); wrong && len(requests) < mostExplained {
			question, _ := halves(l)
			addIDs(asked, question)
			requests = append(requests, bytes.Clone(afterBy(question)))
		}
	})
	if err != nil {
		return "", err
	}
	err = r.each(func(l []byte) {
		question, answer := halves(l)
		if slices.ContainsFunc(requests, func(q []byte) bool { return bytes.Equal(q, afterBy(question)) }) {
			addIDs(shown, answer)
		}
	})
	if err != nil {
		return "", err
	}
	var all []recorded
	err = r.each(func(l []byte) {
		question, _ := halves(l)
		if mentions(question, asked) || bytes.Contains(question, []byte(`"mutation `)) && mentions(question, shown) {
			when, _ := strconv.ParseInt(string(at.FindSubmatch(l)[1]), 10, 64)
			all = append(all, recorded{when, bytes.Clone(l)})
		}
	})
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(all, func(a, b recorded) int { return int(a.at - b.at) })
	file, err := os.CreateTemp(folder, "kith-wrong-*.jsonl")
	if err != nil {
		return "", err
	}
	text := bufio.NewWriter(file)
	for _, one := range all {
		_, _ = text.Write(append(one.line, '\n')) // Flush has the error
	}
	return file.Name(), errors.Join(text.Flush(), file.Close())
}

// each hands over every line.
func (r *Recorder) each(do func(line []byte)) error {
	for i := range r.tracks {
		file, err := os.Open(filepath.Join(r.folder, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(s2.NewReader(file))
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			do(lines.Bytes())
		}
		if err := errors.Join(lines.Err(), file.Close()); err != nil {
			return fmt.Errorf("read what was recorded: %w", err)
		}
	}
	return nil
}

// halves are the part of a line up to the request's end, and the rest.
func halves(line []byte) (question, answer []byte) {
	i := bytes.Index(line, []byte(`,"response":`))
	return line[:i], line[i:]
}

// afterBy is who asks and what, without the times.
func afterBy(question []byte) []byte {
	_, asked, _ := bytes.Cut(question, []byte(`,"by":`))
	return asked
}

func addIDs(to map[string]bool, text []byte) {
	for _, id := range ids.FindAllSubmatch(text, -1) {
		to[string(id[1])] = true
	}
}

func mentions(text []byte, some map[string]bool) bool {
	for _, id := range ids.FindAllSubmatch(text, -1) {
		if some[string(id[1])] {
			return true
		}
	}
	return false
}
