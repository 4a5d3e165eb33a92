package gateway

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/99designs/gqlgen/graphql"
)

// bodies that are read in one pass, and bodies that are left to encoding/json.
var scanned = map[string]bool{
	`{"query":"{ a }"}`: true,
	" {\t\"query\" : \"{\\n a(b: \\\"c\\\") }\" , \"variables\" : null,\r\n\"operationName\":null} ":                                                true,
	`{"query":"q","operationName":"A","variables":{"id":"1","ids":["1","2",[]],"n":-12.5e+3,"m":0,"t":true,"f":false,"z":null,"o":{"a":{},"a":1}}}`: true,
	`{"query":"ü","extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}`:                                                                  true,
	`{}`: true,

	``: false, `null`: false, `[]`: false, `[{"query":"a"}]`: false, `{"query":"a"`: false, `{"query":"a"}}`: false, `{"query":"a",}`: false, `{"query":"a" "b"}`: false,
	`{"query":null}`: false, `{"query":1}`: false, `{"Query":"a"}`: false, `{"query":"a","query":"b"}`: false, `{"query":"a","more":1}`: false,
	`{"query":"\u0041"}`: false, `{"query":"\x"}`: false, "{\"query\":\"a\nb\"}": false, "{\"query\":\"\xff\"}": false, "{\"query\":\"\\n\xff\"}": false,
	`{"query":"a","variables":[]}`: false, `{"query":"a","variables":{"a":01}}`: false, `{"query":"a","variables":{"a":1.}}`: false, `{"query":"a","variables":{"a":+1}}`: false,
	`{"query":"a","variables":{"a":-}}`: false, `{"query":"a","variables":{"a":1e}}`: false, `{"query":"a","variables":{"a":[1,]}}`: false, `{"query":"a","variables":{"a":tru}}`: false,
	`{"query":"a","variables":{"a":` + strings.Repeat("[", mostNested) + strings.Repeat("]", mostNested) + `}}`: false,
}

func TestBodiesAreScanned(t *testing.T) {
	for text, want := range scanned {
		if _, ok := scanParams(text); ok != want {
			t.Errorf("%q: scanned %v, want %v", text, ok, want)
		}
		checkScan(t, text)
	}
}

// FuzzBodies looks for a text that scanParams reads in another way than encoding/json.
func FuzzBodies(f *testing.F) {
	for text := range scanned {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkScan(t, text) })
}

func checkScan(t *testing.T, text string) {
	t.Helper()
	got, ok := scanParams(text)
	if !ok {
		return
	}
	var want graphql.RawParams
	if err := decode(bytes.NewBufferString(text), &want); err != nil {
		t.Fatalf("%q is taken, encoding/json says: %v", text, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is read as %#v, by encoding/json as %#v", text, got, want)
	}
}

// The query cache keeps queries for long: one must not keep the variables that came with it.
func TestQueriesAreNoPartsOfTheirBodies(t *testing.T) {
	text := `{"query":"{ a }","variables":{"a":"` + strings.Repeat("x", 1000) + `"}}`
	params, _ := scanParams(text)
	start, query := uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(unsafe.Pointer(unsafe.StringData(params.Query)))
	if start <= query && query < start+uintptr(len(text)) {
		t.Error("the query is a part of the body")
	}
}
