package limits_test

import (
	"strings"
	"testing"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/internal/check"
)

// officialIntrospection is the query that graphql-js sends with all its options on, including nine
// wrapping types.
var officialIntrospection = `
query IntrospectionQuery {
  __schema {
    description
    queryType { name kind }
    mutationType { name kind }
    subscriptionType { name kind }
    types { ...FullType }
    directives {
      name
      description
      isRepeatable
      locations
      args(includeDeprecated: true) { ...InputValue }
    }
  }
}
fragment FullType on __Type {
  kind
  name
  description
  specifiedByURL
  isOneOf
  fields(includeDeprecated: true) {
    name
    description
    args(includeDeprecated: true) { ...InputValue }
    type { ...TypeRef }
    isDeprecated
    deprecationReason
  }
  inputFields(includeDeprecated: true) { ...InputValue }
  interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
  possibleTypes { ...TypeRef }
}
fragment InputValue on __InputValue {
  name
  description
  type { ...TypeRef }
  defaultValue
  isDeprecated
  deprecationReason
}
fragment TypeRef on __Type {
  kind name ` + strings.Repeat("ofType { kind name ", 9) + strings.Repeat("}", 9) + `
}`

func TestOfficialIntrospectionPasses(t *testing.T) {
	wantCode(t, newPrepare(t, limits.Limits{})(officialIntrospection, nil), "")

	// The schema has room to grow.
	cost := costOf(t, officialIntrospection, nil)
	t.Logf("costs %d", cost)
	check.That(t, cost <= 65_000, "costs %d of 100,000: the schema has grown; make introspection cheaper", cost)
}

func TestNestedIntrospectionIsRefused(t *testing.T) {
	prepare := newPrepare(t, limits.Limits{})
	deep := "{ __schema { types " + strings.Repeat("{ ofType ", 25) + "{ name }" + strings.Repeat("}", 25) + " } }"
	wantCode(t, prepare(deep, nil), apierr.CodeTooCostly)

	many := "{" + repeat(40, func(i int) string {
		return " a" + string(rune('A'+i%26)) + string(rune('a'+i/26)) + ": __schema { types { fields { type { fields { args { type { name } } } } } } }"
	}) + "}"
	wantCode(t, prepare(many, nil), apierr.CodeTooCostly)

	errs := prepare("{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }", nil)
	check.That(t, len(errs) != 0, "lists of types nested three times were let through")
}
