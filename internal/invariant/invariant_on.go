//go:build invariants || race

package invariant

import "fmt"

// Enabled says that this build checks its invariants.
const Enabled = true

// Check panics with the formatted message unless ok.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
