package storage

import (
	"encoding/json"
	"fmt"
	"strings"
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
	text, err := CompactJSON(values)
	if err == nil && len(text) > MaxAttributes {
		err = fmt.Errorf("%w: %d bytes", ErrAttributesTooLong, len(text))
	}
	if err != nil {
		return "", err
	}
	return Attributes(text), nil
}

// CompactJSON is a value as it is stored: without a line end, and with <, > and &, of which one byte would become six.
func CompactJSON(value any) (string, error) {
	var text strings.Builder
	spell := json.NewEncoder(&text)
	spell.SetEscapeHTML(false)
	err := spell.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
}
