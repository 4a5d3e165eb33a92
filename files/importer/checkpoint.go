package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"kith/files/graphfile"
	"kith/storage"
)

// checkpoint is saved before every chunk. So it has two facts: how far the import has come, and how
// far the next chunk reaches, which a crash may leave half written.
type checkpoint struct {
	Layout  int            `json:"layout"`
	Start   storage.Micros `json:"start"`            // when the import began, at first
	Next    position       `json:"next"`             // everything before it is in the store
	Pending int64          `json:"pending"`          // ordinal up to which lines may have been written
	Bytes   int64          `json:"bytes"`            // of the files, as they are on disk, up to Next
	Report  Report         `json:"report"`           // up to Next
	Things  map[int64]bool `json:"things,omitempty"` // as lines have been read
	Lives   []int64        `json:"lives,omitempty"`  // of the shards, see [storage.Served]
}

const checkpointLayout = 1

// resumableStore is a store on which an import can be continued.
type resumableStore interface {
	storage.Checkpoints
	Shards() int
	Served(ctx context.Context, shard int) (storage.Served, error)
}

// checkpointKey names the import of these files, in this order, as this relation, wherever the
// files are. It is empty if one of them can be read only once.
func checkpointKey(inputs []*input, relation graphfile.Kind) string {
	hash := sha256.New()
	hash.Write([]byte(relation))
	for _, in := range inputs {
		if in.identity == nil {
			return ""
		}
		hash.Write(in.identity)
	}
	return "import-" + hex.EncodeToString(hash.Sum(nil)[:16])
}

// load loads the checkpoint of an earlier run, if there is one.
func (im *Import) load(ctx context.Context) error {
	if im.key == "" {
		return nil
	}
	for shard := range im.checkpoints.Shards() {
		served, err := im.checkpoints.Served(ctx, shard)
		if err != nil {
			return err
		}
		im.found.Lives = append(im.found.Lives, served.Life)
	}
	value, found, err := im.checkpoints.LoadCheckpoint(ctx, im.key)
	if err != nil || !found {
		return wrap("load the import's checkpoint", err)
	}
	var saved checkpoint
	if err := json.Unmarshal(value, &saved); err != nil {
		return wrap("read the import's checkpoint", err)
	}
	if saved.Layout != checkpointLayout {
		return fmt.Errorf("the import's checkpoint %s has the layout %d, this program knows %d", im.key, saved.Layout, checkpointLayout)
	}
	if !maps.Equal(saved.Things, im.Things) {
		return errors.New("this import began with other kinds of relations, and a number would be a user's in one half and a thing's in the other: continue it with the file of --relations that it began with")
	}
	lives := im.found.Lives
	if !slices.Equal(saved.Lives, lives[:min(len(saved.Lives), len(lives))]) { // what a restored shard has lost is written again
		saved.Next, saved.Bytes, saved.Report = position{}, 0, Report{}
	}
	im.found, im.resumed, im.found.Lives = saved, true, lives
	return nil
}

// save records what is done, and that the lines up to an ordinal are next.
func (im *Import) save(ctx context.Context, pending int64) error {
	im.at.Pending = max(im.found.Pending, pending)
	if im.key == "" {
		return nil
	}
	value, err := json.Marshal(im.at)
	if err != nil {
		return err
	}
	return wrap("save the import's checkpoint", im.checkpoints.SaveCheckpoint(ctx, im.key, value))
}

func (im *Import) forget(ctx context.Context) error {
	if im.key == "" {
		return nil
	}
	return wrap("delete the import's checkpoint", im.checkpoints.DeleteCheckpoint(ctx, im.key))
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
