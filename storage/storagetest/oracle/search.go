package oracle

import (
	"context"
	"maps"
	"slices"
	"strings"

	"kith/storage"
)

// SearchHandles implements [storage.HandleSearcher].
func (s *Store) SearchHandles(ctx context.Context, prefix, after string, limit int) ([]storage.HandleOwner, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []storage.HandleOwner
	if after != "" && !storage.ValidHandle(after) {
		return nil, nil
	}
	for _, handle := range slices.Sorted(maps.Keys(s.handles)) {
		if strings.HasPrefix(handle, prefix) && handle > after && len(list) < limit {
			list = append(list, storage.HandleOwner{Handle: handle, User: s.handles[handle].owner})
		}
	}
	return list, nil
}
