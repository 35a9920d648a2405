// Package invariant states what must hold: checked in builds with the tag invariants and in race builds, free in
// others. It is for mistakes of the program; bad input and corrupt data are errors.
package invariant
