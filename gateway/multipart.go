package gateway

import (
	"mime"
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/graph/deferral"
)

// format is a form of answers in parts, in which clients differ.
type format struct {
	media string // of the answer
	first func(d *delivery, response *graphql.Response, begun []*deferral.Part) []byte
	next  func(d *delivery, ended []*part, begun []*deferral.Part) []byte
}

const (
	mediaParts = "multipart/mixed"

	// A client knows that a message has ended when it sees the boundary, so the boundary is sent at once.
	partsBegin  = "\r\n---"
	messageHead = "\r\nContent-Type: application/json; charset=utf-8\r\n\r\n"
	messageEnd  = "\r\n---"
	partsEnd    = "--\r\n"
)

// formats are the formats that a client may ask for, by the parameter of the media type in Accept.
var formats = []struct {
	parameter, value string
	*format
}{
	// https://specs.apollo.dev/incremental/v0.2/, as graphql-js has it since 17.0.0-alpha.9
	{"incrementalspec", "v0.2", &format{mediaParts + `; boundary="-"; incrementalSpec=v0.2`, firstByID, nextByID}},
	// https://github.com/graphql/graphql-spec/tree/48cf7263a71a683fab03d45d309fd42d8d9a6659/spec
	{"deferspec", "20220824", &format{mediaParts + `; boundary="-"; deferSpec=20220824`, firstByPath, nextByPath}},
}

// formatOf is the first format in which the client takes answers in parts; nil if there is none.
func formatOf(r *http.Request) *format {
	accept := r.Header.Get("Accept")
	for one := range strings.SplitSeq(accept[:min(len(accept), maxAccept)], ",") {
		media, parameters, err := mime.ParseMediaType(one)
		if err != nil || media != mediaParts || strings.Trim(parameters["q"], "0.") == "" && parameters["q"] != "" {
			continue
		}
		for _, f := range formats {
			if parameters[f.parameter] == f.value {
				return f.format
			}
		}
	}
	return nil
}

// firstByID is the first message of incrementalSpec=v0.2.
func firstByID(d *delivery, response *graphql.Response, begun []*deferral.Part) []byte {
	head, tail := envelope(response)
	text := append([]byte(messageHead), head...)
	text = append(text, response.Data...)
	text = append(text, tail[:len(tail)-1]...)
	text = append(text, `,"pending":`...)
	return d.close(appendJSON(text, d.pending(begun)))
}

// pending announces parts.
func (d *delivery) pending(begun []*deferral.Part) []any {
	all := make([]any, len(begun))
	for i, p := range begun {
		all[i] = struct {
			ID    string   `json:"id"`
			Path  []string `json:"path"`
			Label string   `json:"label,omitempty"`
		}{d.ids[p], p.Path, p.Label}
	}
	return all
}

// nextByID is a later message of incrementalSpec=v0.2.
func nextByID(d *delivery, ended []*part, begun []*deferral.Part) []byte {
	text := append([]byte(messageHead), '{')
	if len(begun) > 0 {
		text = append(appendJSON(append(text, `"pending":`...), d.pending(begun)), ',')
	}
	var completed []any
	var list listed
	for _, p := range ended {
		id := d.ids[p.Part]
		completed = append(completed, struct {
			ID     string        `json:"id"`
			Errors gqlerror.List `json:"errors,omitempty"`
		}{id, p.failed})
		if p.failed != nil {
			continue
		}
		for i, response := range p.responses {
			text = list.next(text)
			text = appendJSON(append(text, `{"id":`...), id)
			if below := p.operations[i].Path[len(p.Path):]; len(below) > 0 {
				text = appendJSON(append(text, `,"subPath":`...), below)
			}
			text = appendRest(text, response)
		}
	}
	text = list.end(text)
	return d.close(appendJSON(append(text, `"completed":`...), completed))
}

// firstByPath is the first message of deferSpec=20220824.
func firstByPath(d *delivery, response *graphql.Response, _ []*deferral.Part) []byte {
	head, tail := envelope(response)
	text := append([]byte(messageHead), head...)
	text = append(text, response.Data...)
	return d.close(append(text, tail[:len(tail)-1]...))
}

// nextByPath is a later message of deferSpec=20220824. A part that failed has the data null.
func nextByPath(d *delivery, ended []*part, _ []*deferral.Part) []byte {
	text := append([]byte(messageHead), '{')
	var list listed
	for _, p := range ended {
		paths, responses := make([][]string, len(p.responses)), p.responses
		for i := range responses {
			paths[i] = p.operations[i].Path
		}
		if p.failed != nil {
			paths, responses = [][]string{p.Path}, []*graphql.Response{{Data: []byte("null"), Errors: p.failed}}
		}
		for i, response := range responses {
			text = list.next(text)
			text = appendJSON(append(text, `{"path":`...), paths[i])
			if p.Label != "" {
				text = appendJSON(append(text, `,"label":`...), p.Label)
			}
			text = appendRest(text, response)
		}
	}
	text = list.end(text)
	return d.close(text[:len(text)-1])
}

// listed writes the list `incremental`, unless it is empty.
type listed bool

func (l *listed) next(text []byte) []byte {
	if !*l {
		*l = true
		return append(text, `"incremental":[`...)
	}
	return append(text, ',')
}

func (l listed) end(text []byte) []byte {
	if !l {
		return text
	}
	return append(text, `],`...)
}

// appendRest writes the response of one of a part's operations, after what identifies it.
func appendRest(text []byte, response *graphql.Response) []byte {
	text = append(append(text, `,"data":`...), response.Data...)
	if len(response.Errors) > 0 {
		text = appendJSON(append(text, `,"errors":`...), response.Errors)
	}
	if len(response.Extensions) > 0 {
		text = appendJSON(append(text, `,"extensions":`...), response.Extensions)
	}
	return append(text, '}')
}

// close ends a message; with the last message it ends the answer.
func (d *delivery) close(text []byte) []byte {
	if d.begun > 0 {
		return append(text, `,"hasNext":true}`+messageEnd...)
	}
	return append(text, `,"hasNext":false}`+messageEnd+partsEnd...)
}
