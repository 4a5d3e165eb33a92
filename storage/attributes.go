package storage

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// MaxAttributes is how many bytes the attributes of one object may take.
const MaxAttributes = 4096

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
