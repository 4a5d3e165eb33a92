// Package defaults fills in what settings leave out.
package defaults

import "reflect"

// For fills in the exported fields of settings that are zero.
func For[T any](settings, defaults T) T {
	to, from := reflect.ValueOf(&settings).Elem(), reflect.ValueOf(defaults)
	for i := range to.NumField() {
		if field := to.Field(i); field.CanSet() && field.IsZero() {
			field.Set(from.Field(i))
		}
	}
	return settings
}
