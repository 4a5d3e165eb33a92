package selections_test

import (
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/storagetest/oracle"
)

// TestTheSchemaHasNoDefer: the schema does not name @defer, and queries with it are refused.
func TestTheSchemaHasNoDefer(t *testing.T) {
	api := apitest.New(t, oracle.New(), apitest.Options{})
	if a := api.Ask(`{ __schema { directives { name } } }`, nil).Whole(); strings.Contains(a.Text, "defer") || !strings.Contains(a.Text, "include") {
		t.Errorf("the directives are %s", a.Text)
	}
	api.Ask(`{ ... @defer { viewer { user { id } } } }`, nil).Refused("BAD_USER_INPUT")
}
