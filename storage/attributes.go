package storage

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Attributes are values that a product keeps beside a user, a post or a follow, by their names: a JSON object with ascending names
// and without blanks, of at most [MaxAttributes] bytes; empty for none. Stores neither read nor search them.
type Attributes string

// MaxAttributes is how many bytes the attributes of one object may take.
const MaxAttributes = 4096

// AttributeChange is new values by name, as JSON. A null removes a value; a name that is left out leaves it as it is.
type AttributeChange map[string]json.RawMessage

// Values are the values by name, as JSON.
func (a Attributes) Values() (values map[string]json.RawMessage, err error) {
	if a != "" {
		if err = json.Unmarshal([]byte(a), &values); err != nil {
			err = fmt.Errorf("read attributes: %w", err)
		}
	}
	return values, err
}

// Apply returns attributes after a change. [ErrAttributesTooLong].
func (c AttributeChange) Apply(to Attributes) (Attributes, error) {
	if len(c) == 0 {
		return to, nil
	}
	values, err := to.Values()
	if err != nil {
		return "", err
	}
	if values == nil {
		values = make(map[string]json.RawMessage, len(c))
	}
	for name, value := range c {
		if values[name] = value; string(value) == "null" {
			delete(values, name)
		}
	}
	if len(values) == 0 {
		return "", nil
	}
	var text bytes.Buffer
	spell := json.NewEncoder(&text)
	spell.SetEscapeHTML(false) // one byte would become six
	err = spell.Encode(values)
	if text.Truncate(max(0, text.Len()-1)); err == nil && text.Len() > MaxAttributes { // without the line end
		err = fmt.Errorf("%w: %d bytes", ErrAttributesTooLong, text.Len())
	}
	if err != nil {
		return "", err
	}
	return Attributes(text.String()), nil
}
