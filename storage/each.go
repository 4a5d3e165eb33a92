package storage

// Each lists what f makes of each element of a list, in its order.
func Each[T, U any](list []T, f func(T) U) []U {
	made := make([]U, len(list))
	for i, one := range list {
		made[i] = f(one)
	}
	return made
}
