// Package osthread asks the kernel for what Go's scheduler cannot give: the order in which threads get a core. With more
// goroutines at work than cores, whoever wakes up for a short command waits for those that compute, for as long as the
// kernel's slice is. Nothing here changes how much of a core anybody gets.
package osthread

import "time"

// preferredSlice is how long a preferred thread computes before others may. The kernel lets a thread that asks for less
// at a time run sooner.
const preferredSlice = 200 * time.Microsecond
