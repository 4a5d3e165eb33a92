package documents

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/99designs/gqlgen/graphql"
	"github.com/go-json-experiment/json/jsontext"

	"kith/gateway/exchange"
	"kith/graph/limits"
	"kith/internal/check"
	"kith/internal/must"
)

// bodyTexts are bodies, with whether each can be read as parameters.
var bodyTexts = map[string]bool{
	`{"query":"{ a }"}`: true,
	" {\t\"query\" : \"{\\n a(b: \\\"c\\\") }\" , \"variables\" : null,\r\n\"operationName\":null} ":                                                true,
	`{"query":"q","operationName":"A","variables":{"id":"1","ids":["1","2",[]],"n":-12.5e+3,"m":0,"t":true,"f":false,"z":null,"o":{"a":{},"a":1}}}`: true,
	`{"query":"ü","extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}}`:                                                                  true,
	`{"query":"a","extensions":{"consistencyToken":"t","more":{"a":[1,{"b":"\\n"}],"c":null},"list":[]}}`:                                           true,
	`{"query":"a","extensions":{"consistencyToken":"t","consistencyToken":[]}}`:                                                                     true,
	`{"query":"a","extensions":{"persistedQuery":null,"consistencyToken":"\\n"}}`:                                                                   true,
	`{"query":"a","extensions":{"cost":true}}`:                                                                                                      true, `{"query":"a","extensions":{"cost":true,"cost":1}}`: true, `{"query":"a","extensions":{"cost":trap}}`: false,
	`{"query":"a","extensions":null}`: true,
	`{}`:                              true, `null`: true, `{"query":null}`: true, `{"Query":"a"}`: true, `{"query":"a","more":1}`: true,
	`{"query":"a","extensions":{"more":"\u0041"}}`: true, `{"query":"\u0041"}`: true, `{"query":"\ud83d\ude00"}`: true,
	"{\"query\":\"\xff\"}": false, "{\"query\":\"\\n\xff\"}": false, `{"query":"\ud800"}`: false, `{"query":"a","variables":{"a":["\ud83dx"]}}`: false,
	`{"query":"a","variables":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`: true,

	`{"query":"a","extensions":{"more":[1,}}`: false, `{"query":"a","extensions":[]}`: false,
	`{"query":"a","extensions":{"persistedQuery":"` + strings.Repeat("x", maxPersistedExtension) + `"}}`: false,

	`{"query":"a","variables":{"a":"\ud83d\ude00 \ufffd","b":"\\ud800 �"}}`: true, `{"query":"a","variables":{"a":"\\\ud800"}}`: false,

	``: false, `[]`: false, `[{"query":"a"}]`: false, `{"query":"a"`: false, `{"query":"a"}}`: false, `{"query":"a",}`: false, `{"query":"a" "b"}`: false,
	`{"query":1}`: false, `{"query":"\x"}`: false, "{\"query\":\"a\nb\"}": false, `{"query":"a"} {}`: false, `{1:"a"}`: false,
	`{"query":"a","variables":[]}`: false, `{"query":"a","variables":{"a":01}}`: false, `{"query":"a","variables":{"a":1.}}`: false, `{"query":"a","variables":{"a":+1}}`: false,
	`{"query":"a","variables":{"a":-}}`: false, `{"query":"a","variables":{"a":1e}}`: false, `{"query":"a","variables":{"a":[1,]}}`: false, `{"query":"a","variables":{"a":tru}}`: false,
	`{"query":"a","variables":{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`: false,
}

func TestBodiesAreRead(t *testing.T) {
	for text, want := range bodyTexts {
		_, err := ReadParameters([]byte(text))
		check.That(t, (err == nil) == want, "%.100q: %v, want parameters %v", text, err, want)
		compareWithJSON(t, text)
	}
	p, err := ReadParameters([]byte(`{"query":"a","Query":"b","operationName":"c","OPERATIONNAME":"d","variables":{"e":1},"Variables":{},"extensions":{"cost":true},"Extensions":{},"DocumentID":"f"}`))
	check.That(t, err == nil && p.Query == "a" && p.OperationName == "c" && len(p.Variables) == 1 && len(p.Extensions) == 1, "names in other letters: %+v %v", p, err)
}

// FuzzBodies looks for a text that is read differently than encoding/json reads it.
func FuzzBodies(f *testing.F) {
	for text := range bodyTexts {
		f.Add(text)
	}
	f.Fuzz(compareWithJSON)
}

// surrogate is an escape of half of a surrogate pair, which encoding/json replaces if it is alone.
var surrogate = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

func compareWithJSON(t *testing.T, text string) {
	t.Helper()
	var want struct {
		Query, OperationName  string
		Variables, Extensions map[string]any
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	wrong := decoder.Decode(&want)
	if _, end := decoder.Token(); wrong == nil && end != io.EOF {
		wrong = errors.New("something follows")
	}
	var names map[string]json.RawMessage
	_ = json.Unmarshal([]byte(text), &names)
	for name := range names { // encoding/json takes other letters for the same name
		for _, exact := range []string{"query", "operationName", "variables", "extensions"} {
			if name != exact && strings.EqualFold(name, exact) {
				return
			}
		}
	}
	got, err := ReadParameters([]byte(text))
	if errors.Is(err, errExtension) || err != nil && (!utf8.ValidString(text) || surrogate.MatchString(text)) {
		return
	}
	must.That(t, (err == nil) == (wrong == nil), "%.100q: %v, encoding/json says %v", text, err, wrong)
	if err == nil && limits.CheckVariables(want.Variables) != nil {
		must.That(t, limits.CheckVariables(got.Variables) != nil, "%.100q is read so that the limits do not refuse it", text)
		return
	}
	if err != nil || !jsontext.Value(text).IsValid() { // some have duplicate names, which encoding/json merges
		return
	}
	for name := range want.Extensions {
		if name != exchange.ExtensionPersisted && name != exchange.ExtensionConsistency && name != exchange.ExtensionCost && name != exchange.ExtensionWhy {
			delete(want.Extensions, name)
		}
	}
	if persisted, ok := want.Extensions[exchange.ExtensionPersisted].(map[string]any); ok {
		maps.DeleteFunc(persisted, func(name string, _ any) bool { return name != "version" && name != "sha256Hash" })
	}
	for _, name := range []string{exchange.ExtensionCost, exchange.ExtensionWhy} {
		if want.Extensions[name] != true || got.Extensions[name] == true {
			delete(want.Extensions, name)
			delete(got.Extensions, name)
		}
	}
	if token, ok := want.Extensions[exchange.ExtensionConsistency]; ok {
		if _, ok := token.(string); !ok {
			delete(want.Extensions, exchange.ExtensionConsistency)
		}
	}
	if got.Query != want.Query || got.OperationName != want.OperationName ||
		!reflect.DeepEqual(got.Variables, want.Variables) || !reflect.DeepEqual(got.Extensions, want.Extensions) {
		t.Fatalf("%q is read as %#v, by encoding/json as %#v", text, got, want)
	}
}

// The query cache keeps queries for long. A kept query must not keep the variables that came with
// it in memory.
func TestQueriesAreNoPartsOfTheirBodies(t *testing.T) {
	body := []byte(`{"query":"{ a }","variables":{"a":"` + strings.Repeat("x", 1000) + `"}}`)
	params, _ := ReadParameters(body)
	start, query := uintptr(unsafe.Pointer(unsafe.SliceData(body))), uintptr(unsafe.Pointer(unsafe.StringData(params.Query)))
	check.That(t, params.Query == "{ a }" && (start > query || query >= start+uintptr(len(body))), "the query is a part of the body")
}

// Variables that the limits refuse are not read whole, and those that they allow are.
func TestOnlyAllowedVariablesAreDecoded(t *testing.T) {
	repeat := strings.Repeat
	list := func(n int, of string) string { return "[" + repeat(of+",", n-1) + of + "]" }
	for a, allowed := range map[string]bool{
		list(limits.Values-1, "1"):                                          true, // the list is a value, too
		list(limits.Values, "1"):                                            false,
		list(200_000, `{"b":1}`):                                            false,
		list(100_000, `"x"`) + `,"b":` + list(100_000, "1"):                 false,
		repeat("[", limits.ValueDepth+1) + repeat("]", limits.ValueDepth+1): false,
		repeat("[", limits.ValueDepth) + repeat("]", limits.ValueDepth):     true,
		repeat("[", 5000) + repeat("]", 5000):                               false,
		repeat(`{"b":`, 5000) + list(100_000, "1") + repeat("}", 5000):      false,
	} {
		text := `{"variables":{"a":` + a + `},"query":"{ a }"}`
		var params *graphql.RawParams
		allocations := testing.AllocsPerRun(1, func() {
			var err error
			params, err = ReadParameters([]byte(text))
			must.That(t, err == nil, "%.50s is no JSON: %v", a, err)
		})
		most := 4.0 * limits.Values
		if strings.HasPrefix(a, repeat("[", 5000)) {
			most = 10 * limits.ValueDepth
		}
		check.That(t, params.Query == "{ a }" && allocations <= most, "%.50s takes %.0f allocations; the query is %q", a, allocations, params.Query)
		err := limits.CheckVariables(params.Variables)
		check.That(t, (err == nil) == allowed, "%.50s: %v", a, err)
	}
}

// Extensions without a meaning are not decoded, and an extension with a meaning is small.
func TestOnlyKnownExtensionsAreDecoded(t *testing.T) {
	many := strings.Repeat(`{"a":[]},`, 100_000)
	for name, text := range map[string]string{
		"plain":    `{"query":"a","extensions":{"consistencyToken":"t","more":[` + many + `0]}}`,
		"escaped":  `{"query":"\u0041","extensions":{"consistencyToken":"t","more":[` + many + `0]}}`,
		"no text":  `{"query":"\u0041","extensions":{"consistencyToken":"t","persistedQuery":null,"more":[` + many + `0],"more":0}}`,
		"one text": `{"query":"\u0041","extensions":{"\u0063onsistencyToken":"t","more":[` + many + `0]}}`,
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		params, err := ReadParameters([]byte(text))
		runtime.GC()
		runtime.ReadMemStats(&after)
		check.That(t, err == nil && params.Extensions["consistencyToken"] == "t" && params.Extensions["more"] == nil, "%s: refused (%v) or read in another way", name, err)
		grown := int(after.HeapAlloc) - int(before.HeapAlloc)
		check.That(t, grown <= 3<<20, "%s: %d kB live for %d kB of extensions", name, grown>>10, len(text)>>10)
		runtime.KeepAlive(params)
	}
	long := `{"query":"a","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("x", maxPersistedExtension) + `"}}}`
	_, err := ReadParameters([]byte(long))
	check.That(t, err == errExtension, "a long one: %v", err)
}
