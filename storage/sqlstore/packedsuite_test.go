package sqlstore

import (
	"context"
	"path/filepath"
	"testing"

	"kith/storage"
	"kith/storage/storagetest"
)

// A store that packs every list before it is read is as good as any other.
func TestConformancePacked(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store {
		dir := t.TempDir()
		return packer{openSmall(t, "sqlite:"+filepath.Join(dir, "0.db")+";"+filepath.Join(dir, "1.db"), nil), t}
	})
}

// packer packs what is about to be read.
type packer struct {
	*Store
	t *testing.T
}

func (p packer) Lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	for _, q := range queries[:min(len(queries), 100)] {
		if err := p.Pack(ctx, side, q.Owner); err != nil && ctx.Err() == nil {
			p.t.Error(err)
		}
	}
	return p.Store.Lists(ctx, side, queries)
}
