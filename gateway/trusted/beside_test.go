package trusted_test

import (
	"testing"

	"kith/gateway/trusted"
	"kith/graph/limits"
	"kith/internal/check"
	"kith/internal/must"
)

// Manifests beside the folder are known, too, and each id stands for one text.
func TestManifestsBesideTheFolder(t *testing.T) {
	t.Parallel()
	at := folder(t, map[string]string{"a.json": `{"a": "{ hello }"}`})
	documents, err := trusted.Load(at, schemas, limits.Limits{}, trusted.Manifest{"b": "{ add(n: 2) }"})
	must.OK(t, err)
	for _, id := range []string{"a", "b"} {
		_, ok := documents.Text(id)
		check.That(t, ok, "%s is not known", id)
	}
	_, err = trusted.Load(at, schemas, limits.Limits{}, trusted.Manifest{"a": "{ add(n: 2) }"})
	check.That(t, err != nil, "one id stands for two texts")
}
