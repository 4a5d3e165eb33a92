package graphfile

import (
	"errors"
	"strings"
	"unicode"

	"kith/storage"
)

// Moderation is the kind of files of what operators have done.
const Moderation Kind = "moderation"

var (
	moderationActions = []string{storage.Suspended: "suspended", storage.Reinstated: "reinstated", storage.PostRemoved: "post removed", storage.CommentRemoved: "comment removed"}
	errEntry          = errors.New("an entry says who has done what, and why: until when a user is suspended, or the number of what was removed")
)

// ModerationFormat is the format of the moderation log.
var ModerationFormat = Format[storage.ModerationEntry]{Moderation, func(e *storage.ModerationEntry) []column {
	return []column{
		id(&e.Owner), moment(&e.At), id(&e.User), word(&e.Action, moderationActions), plain(&e.By), text(&e.Reason, storage.MaxReasonLength),
		orEmpty(&e.Until, moment(&e.Until)), orEmpty(&e.Number, number(&e.Number)),
	}
}, func(e *storage.ModerationEntry) error {
	isBy := e.By != "" && len(e.By) <= storage.MaxOperatorText && !strings.ContainsFunc(e.By, unicode.IsControl)
	if !isBy || e.Action == 0 || e.Reason == "" || (e.Action == storage.Suspended) != (e.Until > 0) || (e.Action >= storage.PostRemoved) != (e.Number > 0) {
		return errEntry
	}
	return nil
}}
