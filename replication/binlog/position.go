package binlog

import "kith/replication/binlog/replica"

// CheckGTID refuses a text that is not a GTID of any supported server.
func CheckGTID(text string) error {
	_, err := replica.ParseGTID(text)
	return err
}

// A position is how much of a binlog has been read or applied: all transactions up to and including
// one. That last one is kept separately, with the fingerprint of its events: reading it again shows
// whether the binlog is still the same.
type position struct {
	before replica.Set  // without the last one
	last   replica.GTID // zero: only before is known
	print  uint32
}

// advance moves the position past the next transaction.
func (p *position) advance(next replica.GTID, print uint32) {
	if p.last != (replica.GTID{}) {
		p.before.Add(p.last)
	}
	p.last, p.print = next, print
}

// set is all transactions of the position.
func (p position) set() replica.Set {
	set := p.before.Clone()
	if p.last != (replica.GTID{}) {
		set.Add(p.last)
	}
	return set
}

func (p position) clone() position {
	p.before = p.before.Clone()
	return p
}
