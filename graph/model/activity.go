package model

import (
	"time"

	"kith/storage"
)

// Activity is what some users have done that concerns the viewer.
type Activity struct {
	ID          string
	Kind        ActivityKind
	Day, At     time.Time
	By          []storage.UserID // who did it last
	OthersCount int32
	Complete    bool
	On          *storage.Post // nil: it concerns no post

	Actors []*User // nil unless selected
	Post   *Post   // nil unless selected
}
