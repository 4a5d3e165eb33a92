package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"kith/replication/binlog"
)

// Binlogs are the logs of a store on MySQL or MariaDB: one for each server.
type Binlogs struct{ reader *binlog.Reader }

// OpenBinlogs asks every DSN for its server, until all have answered; the caller closes the logs.
// It fails if a server's binlog does not say enough.
func OpenBinlogs(ctx context.Context, dsns []string, logger *slog.Logger) (*Binlogs, error) {
	reader, err := binlog.OpenReader(ctx, dsns, logger)
	if err != nil {
		return nil, err
	}
	return &Binlogs{reader}, nil
}

// Logs implements [Changes].
func (b *Binlogs) Logs() []Log {
	var logs []Log
	for _, l := range b.reader.Logs() {
		logs = append(logs, serverLog{l})
	}
	return logs
}

// Close releases the connections.
func (b *Binlogs) Close() error { return b.reader.Close() }

type serverLog struct{ log *binlog.Log }

func (l serverLog) Name() string  { return "binlog/" + l.log.Name() }
func (l serverLog) Title() string { return "binlog of " + l.log.Server() }

// Begin implements [Log]: a server may be older than the store, and have been another store's.
func (l serverLog) Begin() LogPosition { return "" }

func (l serverLog) End(ctx context.Context) (LogPosition, error) {
	at, err := l.log.End(ctx)
	return LogPosition(at), err
}

func (l serverLog) Read(ctx context.Context, after, upTo LogPosition, take func([]Row, func() (LogPosition, error)) error) error {
	err := l.log.Read(ctx, string(after), string(upTo), func(changes []binlog.Change, at func() (string, error)) error {
		rows := make([]Row, len(changes))
		for i, c := range changes {
			rows[i] = Row(c)
		}
		return take(rows, func() (LogPosition, error) {
			text, err := at()
			return LogPosition(text), err
		})
	})
	var unreadable *binlog.StopError
	if errors.Is(err, binlog.ErrHistory) || errors.As(err, &unreadable) && unreadable.GTID != "" {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}
