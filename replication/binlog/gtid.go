package binlog

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"
)

// gtid names one transaction. It is comparable.
type gtid struct {
	maria mysql.MariadbGTID // MariaDB: domain, server, number

	source uuid.UUID // MySQL: source, tag, number
	tag    mysql.Tag
	number int64
}

func (g gtid) String() string {
	switch {
	case g.source == uuid.Nil:
		return g.maria.String()
	case g.tag.String() == "":
		return fmt.Sprintf("%s:%d", g.source, g.number)
	default:
		return fmt.Sprintf("%s:%s:%d", g.source, g.tag, g.number)
	}
}

// addTo adds the transaction, the next one of the binlog, to a set.
func (g gtid) addTo(set mysql.GTIDSet) {
	switch set := set.(type) {
	case *mysql.MariadbGTIDSet:
		one := g.maria
		set.Sets[g.maria.DomainID] = &one
	case *mysql.MysqlGTIDSet:
		set.AddGTIDWithTag(g.source, g.tag, g.number)
	}
}

// CheckGTID refuses a text that is not a GTID of any supported server.
func CheckGTID(text string) error {
	_, notMariaDB := parseGTID(mysql.MariaDBFlavor, text)
	_, notMySQL := parseGTID(mysql.MySQLFlavor, text)
	if notMariaDB != nil && notMySQL != nil {
		return fmt.Errorf("%q is no GTID, such as 0-1-270 of MariaDB", text)
	}
	return nil
}

// parseGTID reads what String writes.
func parseGTID(flavor, text string) (gtid, error) {
	if flavor == mysql.MariaDBFlavor {
		one, err := mysql.ParseMariadbGTID(text)
		if err != nil {
			return gtid{}, err
		}
		return gtid{maria: *one}, nil
	}
	set, err := mysql.ParseMysqlGTIDSet(text)
	if err != nil {
		return gtid{}, err
	}
	for source, tags := range *set.(*mysql.MysqlGTIDSet) {
		for tag, intervals := range tags {
			return gtid{source: source, tag: tag, number: intervals[0].Start}, nil
		}
	}
	return gtid{}, fmt.Errorf("no GTID in %q", text)
}

// A position is how much of a binlog has been read or applied: all transactions up to and including
// one. That last one is kept separately, with the fingerprint of its events: reading it again shows
// whether the binlog is still the same.
type position struct {
	before mysql.GTIDSet // without the last one
	last   gtid          // zero: only before is known
	print  uint32
}

// advance moves the position past the next transaction.
func (p *position) advance(next gtid, print uint32) {
	if p.last != (gtid{}) {
		p.last.addTo(p.before)
	}
	p.last, p.print = next, print
}

// set is all transactions of the position.
func (p position) set() mysql.GTIDSet {
	set := p.before.Clone()
	if p.last != (gtid{}) {
		p.last.addTo(set)
	}
	return set
}

func (p position) clone() position {
	p.before = p.before.Clone()
	return p
}
