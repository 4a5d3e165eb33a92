package model

// Viewer is what only the user sees who is signed in.
type Viewer struct {
	User *User // with its row, if that is selected
}

func (v *Viewer) ID() string { return "viewer_" + v.User.ID() }

// Discoverable reports whether the viewer may be suggested to others.
func (v *Viewer) Discoverable() bool { return !v.User.Row.Undiscoverable }
