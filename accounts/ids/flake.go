package ids

import (
	"fmt"
	"time"

	"github.com/sony/sonyflake/v2"

	"kith/storage"
)

// The layout of an id. It must never change: ids made before and after a change could be the same.
const (
	timeUnit     = 10 * time.Millisecond
	sequenceBits = 8
	machineBits  = 16
)

var firstMoment = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// unit is [timeUnit] in the unit in which times are counted here.
const unit = storage.Micros(timeUnit / time.Microsecond)

// maxSetBack is how far the clock may have been set back for Next to wait.
const maxSetBack = time.Second

// flake makes the ids of one lease of one machine id.
type flake struct {
	machine     int
	from, until storage.Micros // ids are made for times in between
	maker       *sonyflake.Sonyflake
	last        storage.Micros // the beginning of the last id's unit of time; 0 before the first
}

func newFlake(machine int, from, until storage.Micros) (*flake, error) {
	maker, err := sonyflake.New(sonyflake.Settings{
		BitsSequence: sequenceBits, BitsMachineID: machineBits, TimeUnit: timeUnit, StartTime: firstMoment,
		MachineID: func() (int, error) { return machine, nil },
	})
	if err != nil {
		return nil, fmt.Errorf("set the ids of machine %d up: %w", machine, err)
	}
	return &flake{machine: machine, from: from, until: until, maker: maker}, nil
}

// renew extends the lease. A lease that had ended begins again from now: another gateway may have
// had it in between.
func (f *flake) renew(now, until storage.Micros) {
	if now >= f.until {
		f.from = now
	}
	f.until = until
}

// next makes an id, or returns how long to wait before the next call. The library
// itself would sleep, holding its lock, until the clock has caught up with the ids,
// even for hours.
func (f *flake) next(now storage.Micros) (storage.UserID, time.Duration, error) {
	switch wait, err := f.wait(now); {
	case err != nil, wait > 0:
		return 0, wait, err
	case now >= f.until:
		return 0, 0, ErrEnded
	}
	number, err := f.maker.NextID()
	if err != nil {
		return 0, 0, err
	}
	return f.admit(storage.UserID(number))
}

// wait is how long the clock needs to catch up with the ids; an error if it was set back by too much.
func (f *flake) wait(now storage.Micros) (time.Duration, error) {
	behind := micros(max(0, f.from-now, f.last-now))
	if behind > maxSetBack {
		return 0, fmt.Errorf("%w by %s", ErrClock, behind)
	}
	return behind, nil
}

// admit holds back ids whose own time is outside of the lease, whatever the clock said before or
// says now.
func (f *flake) admit(id storage.UserID) (storage.UserID, time.Duration, error) {
	made := storage.MicrosOf(f.maker.ToTime(int64(id)))
	switch {
	case made < f.from: // the unit in which the lease began, or earlier
		return 0, micros(max(f.from-made, unit)), nil
	case made+unit > f.until:
		return 0, 0, ErrEnded
	}
	f.last = made
	return id, 0, nil
}

// end is the first time for which no id was made, 0 if no id was made at all.
func (f *flake) end() storage.Micros {
	if f.last == 0 {
		return 0
	}
	return f.last + unit
}

func micros(m storage.Micros) time.Duration { return time.Duration(m) * time.Microsecond }
