package growth

import "math"

// Popularity is how users are asked for: by Zipf's law, the k-th user in proportion to k^−Shape, with
// PerSecond keys a second in all.
type Popularity struct {
	Users     float64
	Shape     float64
	PerSecond float64
}

// Hits computes what share of the keys is in memory, and how many entries that takes, if each key stays
// there for keep seconds after it was read, and there is room for that many entries.
//
// A key that is asked for r times a second is read once, and then found r·keep times on average: a share
// of r·keep / (1 + r·keep) of its requests is answered from memory, and it is in memory for the same
// share of the time. If there is not enough room, the keys that are asked for most have it, as the cache
// intends.
func (p Popularity) Hits(keep, room float64) (share, entries float64) {
	total := p.sum(func(float64) float64 { return 1 }, math.Inf(1), nil)
	share = p.sum(func(weight float64) float64 {
		expected := p.PerSecond * weight / total * keep
		return expected / (1 + expected)
	}, room, &entries) / total
	return share, entries
}

// sum adds up over all ranks the weight times a value, until the values add up to room. At the head,
// where ranks differ most, they are added one by one; after it, blocks of ranks that differ by one in a
// hundred are added, each by its middle.
func (p Popularity) sum(value func(weight float64) float64, room float64, used *float64) (sum float64) {
	const head, block = 1000, 1.01
	filled := 0.0
	for rank := 1.0; rank <= p.Users && filled < room; {
		count := 1.0
		if rank > head {
			count = math.Min(math.Floor(rank*(block-1)), p.Users-rank+1)
		}
		weight := math.Pow(rank+(count-1)/2, -p.Shape)
		v := value(weight)
		if filled+count*v > room {
			count = (room - filled) / v
			filled = room
		} else {
			filled += count * v
		}
		sum += count * weight * v
		rank += math.Max(1, count)
	}
	if used != nil {
		*used = filled
	}
	return sum
}
