package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"unicode"
)

// printable makes one line of a text, and writes control characters, and those that turn the direction of
// text, as escapes: a terminal would obey them, and names of files may hold any.
func printable(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\n", "; ") {
		if unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// worded is the text of an error without the words of programmers: "/a: no such file or directory" instead of "stat /a: …",
// "db1:3306: connection refused" instead of "dial tcp db1:3306: connect: …", and "interrupted" instead of "context canceled".
func worded(err error) string {
	text := err.Error()
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		text = strings.Replace(text, file.Error(), file.Path+": "+file.Err.Error(), 1)
	}
	call, ok := errors.AsType[*net.OpError](err)
	if errno, is := errors.AsType[syscall.Errno](err); ok && is && call.Addr != nil {
		before, _, _ := strings.Cut(text, call.Error())
		why := errno.Error()
		if !strings.Contains(before, call.Addr.String()) {
			why = call.Addr.String() + ": " + why
		}
		text = strings.Replace(text, call.Error(), why, 1)
	}
	return strings.NewReplacer(context.Canceled.Error(), "interrupted", context.DeadlineExceeded.Error(), "it took too long").Replace(text)
}

// Output is the flag of all commands that end with a report. Lists of it are never null in JSON.
type Output struct {
	Output string `default:"text" enum:"text,json" placeholder:"FORM" help:"Report format: text or json. Default: ${default}."`
}

// JSON reports whether the report is for programs.
func (o Output) JSON() bool { return o.Output == "json" }

// WriteJSON writes a report for programs.
func WriteJSON(out io.Writer, report any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
