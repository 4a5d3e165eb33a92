package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/gateway/exchange"
	"kith/gateway/quota"
	"kith/graph/apierr"
)

// The two media types of GraphQL over HTTP, and that of server-sent events. With mediaResponse the status says how the request went. With
// mediaJSON it is 200 for any GraphQL request, valid or not, because older clients would otherwise ignore the body.
const (
	mediaJSON     = "application/json"
	mediaResponse = "application/graphql-response+json"
	mediaStream   = "text/event-stream"
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
	list, best := claims(exchange.Listed(r.Header, "Accept")), 0
	for i, c := range list {
		if c.weight > list[best].weight || c.weight > 0 && c.weight == list[best].weight && c.place < list[best].place {
			best = i
		}
	}
	return ranges[best][len(ranges[best])-1]
}

// weighed is a media type, or a coding, that a header accepts, with its weight (RFC 9110, section 12.4.2).
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
	return claims(exchange.Listed(r.Header, "Accept"))[len(ranges)-1].weight > 0
}

// answer writes the response of one request.
type answer struct {
	*exchange.Exchange
	r         *http.Request
	bounds    *quota.Limiter // nil: who is refused does not wait
	metrics   *exchange.Metrics
	permit    *quota.Permit // of a request to plain HTTP
	media     string
	streaming bool // the client prefers server-sent events
	keeping   keeping
}

// answering begins the answer to a request.
func answering(r *http.Request, x *exchange.Exchange, bounds *quota.Limiter, metrics *exchange.Metrics) answer {
	a := answer{Exchange: x, r: r, bounds: bounds, metrics: metrics, permit: new(quota.Permit), media: negotiate(r)}
	if a.media == mediaStream {
		a.media, a.streaming = mediaJSON, true // for refusals before there is a stream
	}
	return a
}

// refuse answers a request that is not GraphQL, or must not be sent this way.
func (a answer) refuse(why *exchange.Refusal) {
	a.Outcome = exchange.Refused
	if why.Status >= http.StatusInternalServerError {
		a.Outcome = exchange.Error
	} else {
		a.pause()
	}
	if why.Status == http.StatusServiceUnavailable || why.Status == http.StatusTooManyRequests {
		a.Header().Set("Retry-After", "1")
	}
	a.write(why.Status, &graphql.Response{Errors: gqlerror.List{exchange.AsGraphQL(why.Err)}})
}

// requestError answers a GraphQL request that was not executed.
func (a answer) requestError(response *graphql.Response) {
	a.Outcome = exchange.Refused
	status := http.StatusOK
	// It is not a failure to ask for the text of a query of which only the hash was sent.
	if len(response.Errors) != 1 || response.Errors[0].Extensions["code"] != string(apierr.CodePersistedNotFound) {
		if a.media == mediaResponse {
			status = http.StatusBadRequest
		}
		a.pause()
	}
	a.write(status, response)
}

// pause slows down a client that is refused again and again. Nothing else waits for it.
func (a answer) pause() {
	if a.bounds != nil {
		a.permit.End()
		a.bounds.Pause(a.r.Context())
	}
}

// result answers an operation that was executed, at least in part.
func (a answer) result(ctx context.Context, response *graphql.Response) {
	a.Outcome = a.metrics.OutcomeOf(ctx, response, a.Patience > 0)
	status := http.StatusOK
	if a.media == mediaResponse && response.Data == nil {
		status = http.StatusGatewayTimeout
		if response.Errors[0].Extensions["code"] == string(apierr.CodeNotRegistered) {
			status = http.StatusForbidden // the whole operation is refused, see Config.MayAsk
		}
	}
	a.write(status, response)
}

// maxTokenHeader is how long a token may be that is answered as a header. nginx takes 4 kB for all headers of an answer: it answers 502 for more,
// and sends the server no requests for a while. A longer token, of a request with two hundred writes, is only in the extension.
const maxTokenHeader = 3000

// minCompressed is the size from which an answer is compressed. Below it, at most one packet is saved.
const minCompressed = 1 << 10

// write sends a response.
func (a answer) write(status int, response *graphql.Response) {
	a.SetHeaders(a.media + "; charset=utf-8")
	head, tail := exchange.Envelope(response)
	if token, ok := response.Extensions[exchange.ExtensionConsistency].(string); ok && len(token) <= maxTokenHeader {
		a.Header().Set(exchange.HeaderConsistency, token)
	}
	parts := [][]byte{head, response.Data, tail}
	if a.keeping.seconds > 0 && a.keeping.keep(a.Header(), parts...) {
		a.permit.End()
		a.WriteHeader(http.StatusNotModified)
		return
	}
	length := len(head) + len(response.Data) + len(tail)
	if length >= minCompressed && acceptsGzip(a.r) {
		parts = [][]byte{zipped(parts)}
		length = len(parts[0])
		a.Header().Set("Content-Encoding", "gzip")
	}
	a.permit.End() // sending takes the client's time
	a.Header().Set("Content-Length", strconv.Itoa(length))
	a.WriteHeader(status)
	for _, part := range parts {
		if !a.send(part) {
			return // the client has disconnected, or does not read
		}
	}
}

// acceptsGzip reports whether a client says that it takes gzip.
func acceptsGzip(r *http.Request) bool {
	accept := exchange.Listed(r.Header, "Accept-Encoding")
	for part := range strings.SplitSeq(accept[:min(len(accept), maxAccept)], ",") {
		if coding, weight := weighed(part); coding == "gzip" {
			return weight > 0
		}
	}
	return false
}

// zippers are used again: each has some hundred kilobytes. The higher levels save little more and take far longer.
var zippers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // only for a level that does not exist
	}
	return w
}}

// zipped compresses an answer as a whole, before it is sent: that is work, for which other requests wait, while sending waits
// for the client.
func zipped(parts [][]byte) []byte {
	var b bytes.Buffer
	w := zippers.Get().(*gzip.Writer)
	w.Reset(&b)
	for _, part := range parts {
		_, _ = w.Write(part) // memory takes everything
	}
	_ = w.Close()
	w.Reset(nil) // or it would hold the answer
	zippers.Put(w)
	return b.Bytes()
}

const (
	// writtenAtOnce is how much of a long answer is sent at a time …
	writtenAtOnce = 256 << 10
	// … and writeTimeout how long a client may take to receive that.
	writeTimeout = 5 * time.Second

	// writtenToStream is how much of a long answer is written to a stream at a time. It becomes one frame, if the
	// client allows frames so long, and nothing else is sent on the connection until the client has taken that
	// frame.
	writtenToStream = 16 << 10
)

// send writes a part of an answer; false if the client does not take it.
func (a answer) send(part []byte) bool {
	if len(part) < quota.LongAnswer {
		_, err := a.Write(part)
		return err == nil
	}
	control, frame := http.NewResponseController(a), writtenAtOnce
	if a.r.ProtoMajor == 2 {
		frame = writtenToStream
	}
	for chunk := range slices.Chunk(part, writtenAtOnce) {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		for frame := range slices.Chunk(chunk, frame) {
			if _, err := a.Write(frame); err != nil {
				return false
			}
		}
	}
	return true
}
