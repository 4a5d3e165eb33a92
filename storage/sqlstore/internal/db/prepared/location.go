package prepared

import (
	"context"
	"database/sql/driver"
)

// Location is the connector of a driver that has none of its own: it opens a name.
func Location(d driver.Driver, name string) driver.Connector { return location{d, name} }

type location struct {
	driver driver.Driver
	name   string
}

func (l location) Connect(context.Context) (driver.Conn, error) { return l.driver.Open(l.name) }
func (l location) Driver() driver.Driver                        { return l.driver }
