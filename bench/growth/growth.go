// Package growth draws a year of a growing graph from measured figures: what its tables take, how many
// servers it needs, what load these servers have, and how long a move to more servers takes. It is
// arithmetic only; bench/results/scale.md says where the figures come from.
package growth

import (
	"errors"
	"fmt"
	"math"
)

// Figures are what was measured.
type Figures struct {
	FollowingBytes float64 `json:"followingBytesAFollow"` // of a row with its indexes, after random inserts
	FollowerBytes  float64 `json:"followerBytesAFollow"`
	UserBytes      float64 `json:"bytesAUser"`             // of all tables that have a row for each user
	PackedBytes    float64 `json:"packedBytesAFollow"`     // of follows that are packed as well
	PackedShare    float64 `json:"packedShare"`            // how many follows these are, 0 to 1
	HotBytes       float64 `json:"hotBytesADailyUser"`     // of the pages of tables and indexes that are read for a user who comes
	CacheBytes     float64 `json:"cacheBytesAnEntry"`      // of a user or a list in a gateway's memory
	CacheKeep      float64 `json:"cacheKeepSeconds"`       // how long it stays there
	FollowCPU      float64 `json:"databaseMsAFollow"`      // CPU time of a follow, without its replication
	ReplicateCPU   float64 `json:"databaseMsAReplication"` // CPU time of its other row
	ReadCPU        float64 `json:"databaseMsARead"`        // CPU time of a request that the memory of gateways does not answer
	GatewayCPU     float64 `json:"gatewayMsARequest"`      // CPU time of any request
	DrainPerSecond float64 `json:"replicatedPerSecond"`    // rows that one replicator carries from one server
	MovePerSecond  float64 `json:"movedPerSecond"`         // rows that a move copies without pauses; a store has one at a time
}

// Curve is how the graph grows: the number of users by the same factor every month, the activity of each
// user linearly.
type Curve struct {
	Months         int        `json:"months"`
	Users          [2]float64 `json:"users"` // at the beginning and at the end
	FollowsPerUser [2]float64 `json:"followsPerUser"`
	DailyShare     float64    `json:"dailyShare"`   // of users who come on a day, 0 to 1
	RequestsPerDay float64    `json:"requestsADay"` // of each of these
	ChangesPerDay  float64    `json:"changesADay"`  // follows and unfollows of each of these
	Peak           float64    `json:"peak"`         // the busiest hour's rate, divided by the mean
	Zipf           float64    `json:"zipf"`         // how unevenly users are asked for
	KeysPerRequest float64    `json:"keysARequest"` // users and lists that a request asks for
}

// Fleet is the servers that the graph may run on.
type Fleet struct {
	DiskBytes       float64 `json:"diskBytes"`      // of a database server
	DiskShare       float64 `json:"diskShare"`      // that tables may fill, 0 to 1
	MemoryBytes     float64 `json:"memoryBytes"`    // for a server's buffer pool
	Cores           float64 `json:"cores"`          // of a database server
	GatewayCores    float64 `json:"gatewayCores"`   // of a gateway
	CoreShare       float64 `json:"coreShare"`      // that may be in use at the peak, 0 to 1
	ShardsPerServer float64 `json:"shardsAServer"`  // databases
	GatewayCache    float64 `json:"gatewayCache"`   // --cache-bytes
	PoolPerShard    float64 `json:"poolAShard"`     // connections of a gateway to a shard: --shard-conns and a quarter of it
	MaxConnections  float64 `json:"maxConnections"` // that a server should have
	MaxLoad         float64 `json:"maxLoad"`        // --max-load of kith shards split
}

// Plan is everything that the arithmetic needs.
type Plan struct {
	Figures Figures `json:"figures"`
	Curve   Curve   `json:"curve"`
	Fleet   Fleet   `json:"fleet"`
}

// Month is the state at the end of a month, 0 being the beginning. Rates are those of the busiest hour.
type Month struct {
	Month   int     `json:"month"`
	Users   float64 `json:"users"`
	Follows float64 `json:"follows"`

	FollowingBytes float64 `json:"followingBytes"`
	FollowerBytes  float64 `json:"followerBytes"`
	OtherBytes     float64 `json:"otherBytes"` // users, and packed lists

	Requests float64 `json:"requestsPerSecond"`
	Changes  float64 `json:"changesPerSecond"` // follows and unfollows
	Gateways float64 `json:"gateways"`
	HitRate  float64 `json:"hitRate"`   // of keys, in gateways' memory
	Kept     float64 `json:"keptBytes"` // by one gateway

	need        float64 // of servers, before it is rounded up
	Servers     float64 `json:"servers"`
	Because     string  `json:"because"` // why so many are needed: disk, memory, CPU, replication
	Shards      float64 `json:"shards"`
	Replicated  float64 `json:"replicatedPerServer"` // rows a second
	Connections float64 `json:"connectionsPerServer"`
	Proxy       bool    `json:"proxy"` // these are more than a server should have

	// In the next month, if that needs more servers:
	SplitIn   float64 `json:"splitInDays"` // until it does; -1: it does not
	MoveRows  float64 `json:"moveRows"`    // that go to the new servers
	MoveTakes float64 `json:"moveTakesDays"`
}

const (
	day          = 86_400.0
	daysPerMonth = 365.0 / 12
)

// Simulate draws the months of a plan, its beginning first. The error says which value of the plan is
// impossible.
func Simulate(p Plan) ([]Month, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	months := make([]Month, p.Curve.Months+2) // the last month only shows what the month before it has to be ready for
	for m := range months {
		months[m] = p.month(m)
	}
	for m := range months[:p.Curve.Months+1] {
		p.addMove(&months[m], &months[m+1])
	}
	return months[:p.Curve.Months+1], nil
}

// mostMonths bounds a plan: ten years.
const mostMonths = 120

func (p *Plan) check() error {
	f, c, s := p.Figures, p.Curve, p.Fleet
	if c.Months < 1 || c.Months > mostMonths {
		return fmt.Errorf("months: %d is not from 1 to %d", c.Months, mostMonths)
	}
	for name, n := range map[string]float64{
		"followingBytesAFollow": f.FollowingBytes, "followerBytesAFollow": f.FollowerBytes, "bytesAUser": f.UserBytes, "hotBytesADailyUser": f.HotBytes,
		"cacheBytesAnEntry": f.CacheBytes, "cacheKeepSeconds": f.CacheKeep, "databaseMsAFollow": f.FollowCPU,
		"databaseMsAReplication": f.ReplicateCPU, "databaseMsARead": f.ReadCPU, "gatewayMsARequest": f.GatewayCPU,
		"replicatedPerSecond": f.DrainPerSecond, "movedPerSecond": f.MovePerSecond,
		"users": min(c.Users[0], c.Users[1]), "followsPerUser": min(c.FollowsPerUser[0], c.FollowsPerUser[1]),
		"requestsADay": c.RequestsPerDay, "changesADay": c.ChangesPerDay, "peak": c.Peak, "zipf": c.Zipf, "keysARequest": c.KeysPerRequest,
		"diskBytes": s.DiskBytes, "memoryBytes": s.MemoryBytes, "cores": s.Cores, "gatewayCores": s.GatewayCores, "shardsAServer": s.ShardsPerServer,
		"gatewayCache": s.GatewayCache, "poolAShard": s.PoolPerShard, "maxConnections": s.MaxConnections,
	} {
		if !(n > 0 && n <= 1e18) { // so that it is false for NaN
			return fmt.Errorf("%s: %v is not above 0 and at most 1e18", name, n)
		}
	}
	for name, n := range map[string]float64{"dailyShare": c.DailyShare, "diskShare": s.DiskShare, "coreShare": s.CoreShare, "maxLoad": s.MaxLoad} {
		if !(n > 0 && n <= 1) {
			return fmt.Errorf("%s: %v is not above 0 and at most 1", name, n)
		}
	}
	if !(f.PackedShare >= 0 && f.PackedShare <= 1 && f.PackedBytes >= 0) {
		return errors.New("packedShare, packedBytesAFollow: from 0 to 1, and not below 0")
	}
	return nil
}

// month is the state at the end of a month, without the move.
func (p *Plan) month(m int) Month {
	f, c, s := p.Figures, p.Curve, p.Fleet
	at := float64(m) / float64(c.Months)
	now := Month{Month: m, Users: c.Users[0] * math.Pow(c.Users[1]/c.Users[0], at)}
	now.Follows = now.Users * (c.FollowsPerUser[0] + at*(c.FollowsPerUser[1]-c.FollowsPerUser[0]))
	now.FollowingBytes, now.FollowerBytes = now.Follows*f.FollowingBytes, now.Follows*f.FollowerBytes
	now.OtherBytes = now.Users*f.UserBytes + now.Follows*f.PackedShare*f.PackedBytes

	perSecond := now.Users * c.DailyShare * c.Peak / day
	now.Requests, now.Changes = perSecond*c.RequestsPerDay, perSecond*c.ChangesPerDay
	usable := s.Cores * s.CoreShare * 1000 // ms of CPU time a second
	now.Gateways = math.Ceil(now.Requests * f.GatewayCPU / (s.GatewayCores * s.CoreShare * 1000))
	asked := Popularity{Users: now.Users, Shape: c.Zipf, PerSecond: now.Requests * c.KeysPerRequest / now.Gateways}
	var entries float64
	now.HitRate, entries = asked.Hits(f.CacheKeep, s.GatewayCache/f.CacheBytes)
	now.Kept = entries * f.CacheBytes

	bytes := now.bytes()
	reads := now.Requests * (1 - now.HitRate)
	for _, of := range []struct {
		servers float64
		because string
	}{
		{bytes / (s.DiskBytes * s.DiskShare), "disk"},
		{now.Users * c.DailyShare * f.HotBytes / s.MemoryBytes, "memory"},
		{(reads*f.ReadCPU + now.Changes*(f.FollowCPU+f.ReplicateCPU)) / usable, "CPU"},
		{now.Changes / f.DrainPerSecond, "replication"},
	} {
		if of.servers > now.need {
			now.need, now.Because = of.servers, of.because
		}
	}
	now.Servers = math.Ceil(now.need)
	now.Shards = now.Servers * s.ShardsPerServer
	if now.Shards > 1 {
		now.Replicated = now.Changes / now.Servers
	}
	now.Connections = now.Gateways * s.PoolPerShard * s.ShardsPerServer
	now.Proxy = now.Connections > s.MaxConnections
	return now
}

func (m *Month) bytes() float64 { return m.FollowingBytes + m.FollowerBytes + m.OtherBytes }

// addMove says when the servers of a month are no longer enough, and how long the move to those of the
// next month takes.
func (p *Plan) addMove(now, next *Month) {
	now.SplitIn = -1
	if next.Servers <= now.Servers {
		return
	}
	// The need for servers grows by a factor; it exceeds what the present servers carry after this part of
	// the month.
	part := math.Log(now.Servers/now.need) / math.Log(next.need/now.need)
	now.SplitIn = math.Max(0, math.Min(1, part)) * daysPerMonth
	now.MoveRows = 2 * now.Follows * (1 - now.Servers/next.Servers)
	now.MoveTakes = now.MoveRows / (p.Figures.MovePerSecond * p.Fleet.MaxLoad) / day
}
