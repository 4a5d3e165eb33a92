package judge

import (
	"fmt"
	"slices"

	"kith/storage"
)

// item judges an edge that names an item.
func (c *change) item() ([]storage.Written, error) {
	var detail storage.Detail
	was := c.Details[c.pair]
	if c.Type != storage.None {
		var err error
		if detail, err = c.Detail.Apply(was); err != nil {
			return nil, err
		}
	}
	switch {
	case c.IfDue && (c.old.Type == storage.None || was.EndsAt == 0 || was.EndsAt > c.At):
		return nil, nil
	case c.old.Type == c.Type && detail == was:
		return nil, nil
	case c.old.Type == c.Type:
		c.put(c.side, c.old) // its time stays
	case c.Type == storage.None:
		c.turn(c.side, c.pair, storage.None, c.At)
		c.Items[c.Item]--
	case slices.Contains(c.NoLists, c.Item):
		return nil, fmt.Errorf("%w: kind %d of user %s", storage.ErrListUnknown, c.Item, c.User)
	case c.Peace && c.User != c.To && c.blocked(c.User, c.To):
		return nil, forbidden(c.pair)
	case c.MaxItems > 0 && c.Items[c.Item] >= c.MaxItems:
		return nil, fmt.Errorf("%w: user %s has %d of kind %d", storage.ErrLimitReached, c.User, c.Items[c.Item], c.Item)
	default:
		c.turn(c.side, c.pair, c.Type, c.At)
		c.Items[c.Item]++
	}
	if c.side == storage.Relations {
		c.Details[c.pair] = detail
	}
	return []storage.Written{{Row: storage.Row{Side: c.side, Edge: c.Now(c.side, c.pair)}}}, nil
}
