package binlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kith/replication/binlog/replica"
	"kith/storage"
)

// checkpoint is what is kept between runs, as JSON.
type checkpoint struct {
	Server    string     `json:"server,omitempty"` // for human readers
	Flavor    string     `json:"flavor"`
	Databases []string   `json:"databases,omitempty"`
	Before    string     `json:"before"` // GTID set without the last transaction
	Last      string     `json:"last,omitempty"`
	Print     uint32     `json:"print,omitempty"`
	Copy      *copyState `json:"copy,omitempty"` // nil once all has been copied
	Tables    int        `json:"tables"`         // how many of the copied tables the program that saved it knew
}

// copyState is the progress of the copy: the last key copied of one table of one database; the
// tables and databases before it in their lists are done.
type copyState struct {
	Table    int            `json:"table"`    // index into copied
	Database int            `json:"database"` // index
	From     storage.UserID `json:"from"`
	To       storage.UserID `json:"to"`
	Post     int64          `json:"post,omitempty"` // of favorites
}

// progress is a checkpoint in use: what has been applied and has to be saved.
type progress struct {
	server *server

	mu    sync.Mutex
	at    position
	copy  *copyState
	work  bool      // rows have been applied, or skipped, since it was saved
	moved bool      // it has advanced since then, by more than bookkeeping
	saved time.Time // when
}

const (
	// saveEvery is how often the checkpoint is saved while there is work. If a replicator is
	// killed, this much has to be read again.
	saveEvery = time.Second

	// saveIdle is how often the checkpoint is saved while only others write. Bookkeeping
	// transactions, such as the saving itself, do not count: an idle server stays idle.
	saveIdle = 30 * time.Second
)

func (s *server) checkpointName() string { return "binlog/" + s.digest("checkpoint") }

// takeOver makes the checkpoint of the server that had the address before this one's. This may be the same server under another name, or a
// replica of it; its binlog shows whether it continues the checkpoint. An older checkpoint of its own may lack what the other one has written.
func (s *server) takeOver(ctx context.Context) error {
	if s.before == "" {
		return nil
	}
	value, found, err := s.cfg.Checkpoints.LoadCheckpoint(ctx, s.before)
	switch {
	case err != nil:
	case found:
		err = s.cfg.Checkpoints.SaveCheckpoint(ctx, s.checkpointName(), value)
	default:
		err = s.cfg.Checkpoints.DeleteCheckpoint(ctx, s.checkpointName())
	}
	if err == nil {
		s.before = ""
	}
	return err
}

// load returns the saved progress; nil if there is none from which to continue.
func (s *server) load(ctx context.Context) (*progress, error) {
	value, found, err := s.cfg.Checkpoints.LoadCheckpoint(ctx, s.checkpointName())
	if err != nil || !found {
		return nil, err
	}
	var c checkpoint
	var at position
	if err = json.Unmarshal(value, &c); err == nil {
		at, err = c.position()
	}
	if err != nil {
		s.log().Warn("replication: cannot read the checkpoint: starting anew", "error", err)
		return nil, nil
	}
	for _, name := range s.databases {
		if c.Flavor != s.flavor || !slices.Contains(c.Databases, name) {
			s.log().Info("replication: the server has a new database: starting anew", "database", name)
			return nil, nil
		}
	}
	p := &progress{server: s, at: at, copy: c.Copy, saved: time.Now()}
	if p.copy != nil && !slices.Equal(c.Databases, s.databases) {
		p.copy = &copyState{}
	}
	if p.copy != nil && p.copy.Table >= len(copied) { // a newer program was copying a table that this one does not know
		p.copy = nil
	}
	if p.copy == nil && c.Tables < len(copied) {
		// A program that did not know a table skipped the rows of that table, which newer gateways may
		// have written already.
		p.copy = &copyState{Table: c.Tables}
	}
	return p, nil
}

func (s *server) checkpoint(at position) checkpoint {
	c := checkpoint{Server: s.name, Flavor: s.flavor, Databases: s.databases, Before: at.before.String(), Print: at.print}
	if at.last != (replica.GTID{}) {
		c.Last = at.last.String()
	}
	return c
}

func (c checkpoint) position() (p position, err error) {
	if p.before, err = replica.ParseSet(c.Before); err != nil {
		return p, fmt.Errorf("GTID set %q: %w", c.Before, err)
	}
	if c.Last != "" {
		if p.last, err = replica.ParseGTID(c.Last); err != nil {
			return p, fmt.Errorf("GTID %q: %w", c.Last, err)
		}
		p.print = c.Print
	}
	return p, nil
}

// begin records the present position of the binlog, before anything is copied.
func (s *server) begin(ctx context.Context) (*progress, error) {
	set, err := s.serverPosition(ctx)
	if err != nil {
		return nil, err
	}
	p := &progress{server: s, at: position{before: set}, copy: &copyState{}}
	return p, p.save(ctx)
}

// serverPosition is what the server has written to its binlog.
func (s *server) serverPosition(ctx context.Context) (replica.Set, error) {
	variable := "gtid_binlog_pos"
	if s.flavor == mySQL {
		variable = "gtid_executed"
	}
	var text string
	if err := s.db.QueryRowContext(ctx, `SELECT @@GLOBAL.`+variable).Scan(&text); err != nil {
		return nil, fmt.Errorf("read %s: %w", variable, err)
	}
	return replica.ParseSet(text)
}

// advance notes that a transaction and all before it have been applied.
func (p *progress) advance(t *transaction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at.advance(t.gtid, t.print)
	p.work = p.work || t.ours() || t.skips > 0
	p.moved = p.moved || !t.bookkeeping
}

// rotated notes that the server has begun a new file. This is saved, so that the files before it
// are no longer needed even if nothing but checkpoints is ever written.
func (p *progress) rotated() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work = true
}

// copied notes how far the copy has been applied.
func (p *progress) copied(state *copyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copy = state
	p.work = true
}

// keep saves the progress at intervals, and once more when the context ends.
func (p *progress) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errLostLock) {
				return // another replicator has it now
			}
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			p.saveIfDue(last, 0)
			return
		case <-time.After(saveEvery):
			p.saveIfDue(ctx, saveIdle)
		}
	}
}

func (p *progress) saveIfDue(ctx context.Context, idle time.Duration) {
	p.mu.Lock()
	due := p.work || p.moved && time.Since(p.saved) >= idle
	p.mu.Unlock()
	if !due {
		return
	}
	if err := p.save(ctx); err != nil && ctx.Err() == nil {
		p.server.log().Warn("replication: cannot save the checkpoint: retrying", "error", err)
	}
}

// save writes the checkpoint.
func (p *progress) save(ctx context.Context) error {
	p.mu.Lock()
	c := p.server.checkpoint(p.at)
	c.Copy, c.Tables = p.copy, len(copied)
	work, moved := p.work, p.moved
	p.work, p.moved = false, false
	p.mu.Unlock()

	value, err := json.Marshal(c)
	if err == nil {
		err = p.server.cfg.Checkpoints.SaveCheckpoint(ctx, p.server.checkpointName(), value)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.work, p.moved = p.work || work, p.moved || moved
		return err
	}
	p.saved = time.Now()
	return nil
}
