package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/klauspost/compress/gzip"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/apierr"
)

// The two media types of the specification. With mediaResponse the status says
// how the request went. With mediaJSON it is 200 for any GraphQL
// request, valid or not, because older clients would otherwise ignore the body.
const (
	mediaJSON     = "application/json"
	mediaResponse = "application/graphql-response+json"
)

// ranges are those that include each media type that we have, which is the last. Nobody gets a stream by a `*`.
var ranges = [...][]string{{"*/*", "application/*", mediaJSON}, {"*/*", "application/*", mediaResponse}, {mediaStream}}

// claim is what the header Accept says of a media type, in the most specific range that includes it (RFC 9110, section 12.5.1).
type claim struct {
	specific, place int // from 1, in ranges and in the header
	weight          float64
}

func claims(accept string) (list [len(ranges)]claim) {
	place := 0
	for part := range strings.SplitSeq(accept[:min(len(accept), maxAccept)], ",") {
		place++
		media, weight := weighed(part)
		for i := range ranges {
			if specific := 1 + slices.Index(ranges[i], media); specific > list[i].specific {
				list[i] = claim{specific, place, weight}
			}
		}
	}
	return list
}

// negotiate picks the media type of the answer: the one that we have to which the client gives the greatest weight, the
// first of those that have the same. A client that accepts none gets mediaJSON all the same.
func negotiate(r *http.Request) string {
	accept := r.Header.Get("Accept")
	if accept == mediaJSON { // as in most requests
		return accept
	}
	list, best := claims(accept), 0
	for i, c := range list {
		if c.weight > list[best].weight || c.weight > 0 && c.weight == list[best].weight && c.place < list[best].place {
			best = i
		}
	}
	return ranges[best][len(ranges[best])-1]
}

// weighed is a media type of the header Accept, with its weight (RFC 9110, section 12.4.2).
func weighed(part string) (media string, weight float64) {
	media, parameters, err := mime.ParseMediaType(part)
	if err != nil {
		return "", 0
	}
	weight = 1
	if q, ok := parameters["q"]; ok {
		weight, _ = strconv.ParseFloat(q, 64)
	}
	return media, weight
}

// maxAccept is how many bytes of the header Accept are read: browsers send some 200.
const maxAccept = 1 << 10

// acceptsStream reports whether a client takes server-sent events, even if only as a
// last resort.
func acceptsStream(r *http.Request) bool {
	return claims(r.Header.Get("Accept"))[len(ranges)-1].weight > 0
}

// answer writes the response of one request.
type answer struct {
	w        http.ResponseWriter
	exchange *exchange
	media    string
	gzip     bool // the client takes long answers compressed
	frame    int  // how many bytes of a long answer are written at a time
	keeping  keeping

	// For requests that are slowed down if they are refused too often.
	streams *streams // nil: it is not
	ctx     context.Context
}

// Header values that never change are shared by all answers. Appending to
// one makes a copy, because its capacity is its length.
var (
	contentTypes = map[string][]string{
		mediaJSON:     {mediaJSON + "; charset=utf-8"},
		mediaResponse: {mediaResponse + "; charset=utf-8"},
	}
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}

	varyAccept = []string{"Accept"}
	varyBoth   = []string{"Accept-Encoding", "Accept"}
)

func (a answer) setHeaders() {
	h := a.w.Header()
	h["Content-Type"] = contentTypes[a.media]
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	switch vary := h["Vary"]; {
	case len(vary) == 0:
		h["Vary"] = varyAccept
	case len(vary) == 1 && vary[0] == varyBoth[0]: // set by the compressing handler
		h["Vary"] = varyBoth
	default:
		h["Vary"] = append(slices.Clip(vary), varyAccept...)
	}
}

// refuse answers a request that is not GraphQL, or must not be sent this way.
func (a answer) refuse(status int, err error) {
	a.exchange.outcome = outcomeRefused
	if status >= http.StatusInternalServerError {
		a.exchange.outcome = outcomeError
	} else {
		a.pause()
	}
	a.write(status, &graphql.Response{Errors: gqlerror.List{asGraphQL(err)}})
}

// requestError answers a GraphQL request that was not executed.
func (a answer) requestError(response *graphql.Response) {
	a.exchange.outcome = outcomeRefused
	status := http.StatusOK
	if a.media == mediaResponse && !isPersistedMiss(response) {
		status = http.StatusBadRequest
	}
	if !isPersistedMiss(response) {
		a.pause()
	}
	a.write(status, response)
}

// pause slows down a client that is refused again and again. Nothing else waits for it.
func (a answer) pause() {
	if a.streams != nil {
		a.exchange.permit.end()
		a.streams.refusals.pause(a.ctx, a.streams.Party(a.ctx))
	}
}

// isPersistedMiss: it is not a failure to ask for the text of a query of which only the hash was
// sent.
func isPersistedMiss(response *graphql.Response) bool {
	return len(response.Errors) == 1 && response.Errors[0].Extensions["code"] == codePersistedNotFound
}

// result answers an operation that was executed, at least in part.
func (a answer) result(ctx context.Context, response *graphql.Response) {
	a.exchange.outcome = a.streams.metrics.outcomeOf(ctx, response, a.exchange.patience > 0)
	status := http.StatusOK
	if a.media == mediaResponse && response.Data == nil {
		status = http.StatusGatewayTimeout
	}
	a.write(status, response)
}

func outcomeOf(ctx context.Context, response *graphql.Response) outcome {
	if len(response.Errors) == 0 {
		return outcomeOK
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return outcomeCanceled
	}
	for _, err := range response.Errors {
		if err.Extensions["code"] == string(apierr.CodeTimeout) {
			return outcomeTimeout
		}
	}
	if response.Data == nil || string(response.Data) == "null" {
		return outcomeError
	}
	return outcomePartial
}

// write sends a response.
func (a answer) write(status int, response *graphql.Response) {
	head, tail := envelope(response)
	if token, ok := response.Extensions[extensionConsistency].(string); ok && len(token) <= maxTokenHeader {
		a.w.Header().Set(headerConsistency, token)
	}
	parts := [...][]byte{head, response.Data, tail}
	if a.keeping.seconds > 0 && a.keeping.keep(a.w.Header(), parts[:]...) {
		a.exchange.permit.end()
		a.w.WriteHeader(http.StatusNotModified)
		return
	}
	a.writeParts(status, len(head)+len(response.Data)+len(tail), parts[:])
}

// writeParts sends the parts of an answer, of a length together.
func (a answer) writeParts(status, length int, parts [][]byte) {
	if a.gzip && length >= longAnswer {
		parts = [][]byte{zipped(parts)}
		length = len(parts[0])
		a.w.Header().Set("Content-Encoding", "gzip")
	}
	a.exchange.permit.end() // sending takes the client's time
	a.exchange.lengthValue[0] = strconv.Itoa(length)
	a.w.Header()["Content-Length"] = a.exchange.lengthValue[:]
	a.w.WriteHeader(status)
	for _, part := range parts {
		if !a.send(part) {
			return // the client has disconnected, or does not read
		}
	}
}

// acceptsGzip reports whether a client says that it takes gzip.
func acceptsGzip(r *http.Request) bool {
	accept := r.Header.Get("Accept-Encoding")
	for part := range strings.SplitSeq(accept[:min(len(accept), maxAccept)], ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(coding) == "gzip" {
			return quality == "" || strings.Trim(quality, " q=.0") != "" // q=0 means no
		}
	}
	return false
}

// zipped compresses a long answer as a whole, as work that takes milliseconds. If [compressed] did
// that while writing, it would not take turns with other requests.
func zipped(parts [][]byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	for _, part := range parts {
		if err == nil {
			_, err = w.Write(part)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // memory takes everything
	}
	return b.Bytes()
}

const (
	// writtenAtOnce is how much of a long answer is sent at a time …
	writtenAtOnce = 256 << 10
	// … and writeTimeout how long a client may take to receive that.
	writeTimeout = 5 * time.Second
)

// send writes a part of an answer; false if the client does not take it.
func (a answer) send(part []byte) bool {
	if len(part) < longAnswer {
		_, err := a.w.Write(part) //nolint:gosec // it is JSON, and says so with nosniff
		return err == nil
	}
	control := http.NewResponseController(a.w)
	for chunk := range slices.Chunk(part, writtenAtOnce) {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		for frame := range slices.Chunk(chunk, a.frame) {
			if _, err := a.w.Write(frame); err != nil {
				return false
			}
		}
	}
	return true
}

// envelope is what surrounds the data of a response: errors come first, as the specification
// advises, then the data as gqlgen wrote it. encoding/json would scan and copy all of it again.
// Data that is nil is left out.
func envelope(response *graphql.Response) (head, tail []byte) {
	head, tail = headOfData, tailOfAll
	if len(response.Errors) > 0 {
		head = appendJSON([]byte(`{"errors":`), response.Errors)
		if response.Data != nil {
			head = append(head, `,"data":`...)
		}
	} else if response.Data == nil {
		head = []byte{'{'}
	}
	if len(response.Extensions) > 0 {
		tail = []byte(`,"extensions":`)
		if len(head) == 1 {
			tail = tail[1:]
		}
		tail = append(appendJSON(tail, response.Extensions), '}')
	}
	return head, tail
}

// The bytes around the data of most answers.
var headOfData, tailOfAll = []byte(`{"data":`), []byte{'}'}

// appendResponse writes a response on one line, and what follows it.
func appendResponse(to []byte, response *graphql.Response, end string) []byte {
	head, tail := envelope(response)
	start := len(to)
	to = slices.Concat(to, head, response.Data, tail, []byte(end))
	for i, c := range to[start : len(to)-len(end)] {
		if c == '\n' { // this one is between values: within strings it is escaped
			to[start+i] = ' '
		}
	}
	return to
}

func appendJSON(to []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // messages, paths and extensions are plain values
	}
	return append(to, text...)
}
