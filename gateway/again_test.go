package gateway_test

import (
	"fmt"
	"testing"

	"kith/gateway"
	"kith/graph/limits"
	"kith/internal/check"
)

// ask sends a query with variables, as JSON, and the name of an operation.
func (s site) ask(query, variables, operation string, headers ...string) reply {
	s.t.Helper()
	return s.post(fmt.Sprintf(`{"query": %q, "variables": %s, "operationName": %q}`, query, variables, operation), headers...)
}

// The same text is sent repeatedly here. What was derived from it for one operation must not be
// used for another.
func TestOperationsOfOneDocumentAreDistinguished(t *testing.T) {
	s := serve(t, gateway.Config{})
	const both = "query A($n: Int) { add(n: $n) } query B($n: Int) { other: add(n: $n) hello }"
	for i := range 3 {
		s.ask(both, `{"n": 1}`, "A").is(t, i, 200, "", `{"data":{"add":1}}`)
		s.ask(both, `{"n": 2}`, "B").is(t, i, 200, "", `{"data":{"other":2,"hello":`)
		s.ask(both, `{}`, "A").is(t, i, 200, "", `{"data":{"add":null}}`)
		for _, unknown := range []string{"", "C"} {
			says := map[string]string{"": "send operationName", "C": `no operation \"C\"`}[unknown]
			got := s.ask(both, `{"n": 1}`, unknown)
			got.is(t, i, 200, "BAD_USER_INPUT", says)
			check.Equal(t, unknown, got.Data, nil)
		}
	}
}

func TestVariablesAreThoseOfTheRequest(t *testing.T) {
	s := serve(t, gateway.Config{})
	const query = "query($n: Int!, $yes: Boolean! = true) { add(n: $n) @include(if: $yes) ...F @skip(if: $yes) } fragment F on Query { twice: add(n: $n) }"
	for range 2 {
		for variables, want := range map[string]string{
			`{"n": 1}`:                `{"data":{"add":1}}`,
			`{"n": 2}`:                `{"data":{"add":2}}`,
			`{"n": 3, "yes": false}`:  `{"data":{"twice":3}}`,
			`{"n": 4, "yes": true}`:   `{"data":{"add":4}}`,
			`{"n": 5, "more": "one"}`: `{"data":{"add":5}}`,
		} {
			check.Equal(t, variables, s.ask(query, variables, "").text, want)
		}
		for _, wrong := range []string{`{}`, `null`, `{"n": null}`, `{"n": "x"}`, `{"n": [1]}`, `{"n": 1.5}`, `{"n": 1, "yes": "no"}`, `{"n": 9223372036854775808}`} {
			s.ask(query, wrong, "").is(t, wrong, 200, "BAD_USER_INPUT")
		}
	}
}

// The cost of an operation is checked for every request, because it depends on the variables.
func TestCostIsThatOfTheRequest(t *testing.T) {
	s := serve(t, gateway.Config{Limits: limits.Limits{Cost: 30}})
	const query = "query($n: Int, $yes: Boolean!) { page(first: $n) ...F @include(if: $yes) } fragment F on Query { more: page(first: $n) }"
	for range 3 {
		for variables, want := range map[string]string{
			`{"n": 10, "yes": false}`: "",
			`{"n": 10, "yes": true}`:  "",
			`{"n": 20, "yes": false}`: "",
			`{"n": 20, "yes": true}`:  "QUERY_TOO_COSTLY",
			`{"n": 99, "yes": false}`: "QUERY_TOO_COSTLY",
		} {
			s.ask(query, variables, "").is(t, variables, 200, want)
		}
	}
}
