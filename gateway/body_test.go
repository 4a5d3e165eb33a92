package gateway

import (
	"bytes"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// bodies that are read in one pass, and bodies that are left to encoding/json.
var scanned = map[string]bool{
	`{"query":"{ a }"}`: true,
	" {\t\"query\" : \"{\\n a(b: \\\"c\\\") }\" , \"variables\" : null,\r\n\"operationName\":null} ":                                                true,
	`{"query":"q","operationName":"A","variables":{"id":"1","ids":["1","2",[]],"n":-12.5e+3,"m":0,"t":true,"f":false,"z":null,"o":{"a":{},"a":1}}}`: true,
	`{"query":"ü","extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}`:                                                                  true,
	`{"query":"a","extensions":{"consistencyToken":"t","more":{"a":[1,{"b":"\\n"}],"c":null},"list":[]}}`:                                           true,
	`{"query":"a","extensions":{"consistencyToken":"t","consistencyToken":[]}}`:                                                                     true,
	`{"query":"a","extensions":{"persistedQuery":null,"consistencyToken":"\\n"}}`:                                                                   true,
	`{"query":"a","extensions":null}`: true,
	`{}`:                              true,

	`{"query":"a","extensions":{"more":[1,}}`: false, `{"query":"a","extensions":{"more":"\u0041"}}`: false, `{"query":"a","extensions":[]}`: false,
	`{"query":"a","extensions":{"persistedQuery":"` + strings.Repeat("x", maxPersistedExtension) + `"}}`: false,
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
	want, err := unscanned(strings.NewReader(text))
	if err != nil {
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

// Extensions that mean nothing are not decoded, and one that does is small.
func TestOnlyKnownExtensionsAreDecoded(t *testing.T) {
	many := strings.Repeat(`{"a":[]},`, 100_000)
	for name, text := range map[string]string{
		"scanned":  `{"query":"a","extensions":{"consistencyToken":"t","more":[` + many + `0]}}`,
		"by json":  `{"query":"\u0041","extensions":{"consistencyToken":"t","more":[` + many + `0]}}`,
		"no text":  `{"query":"\u0041","extensions":{"consistencyToken":"t","persistedQuery":null,"more":[` + many + `0],"more":0}}`,
		"one text": `{"query":"\u0041","extensions":{"\u0063onsistencyToken":"t","more":[` + many + `0]}}`,
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		params, bad := decodeParams(bytes.NewBufferString(text))
		runtime.GC()
		runtime.ReadMemStats(&after)
		if bad != nil || params.Extensions["consistencyToken"] != "t" || params.Extensions["more"] != nil {
			t.Errorf("%s: refused (%v) or read in another way", name, bad)
		}
		if grown := int(after.HeapAlloc) - int(before.HeapAlloc); grown > 3<<20 {
			t.Errorf("%s: %d kB live for %d kB of extensions", name, grown>>10, len(text)>>10)
		}
		runtime.KeepAlive(params)
	}
	long := `{"query":"a","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("x", maxPersistedExtension) + `"}}}`
	if _, bad := decodeParams(bytes.NewBufferString(long)); bad == nil || bad.status != http.StatusBadRequest || bad.err != errExtension {
		t.Errorf("a long one: %v", bad)
	}
}
