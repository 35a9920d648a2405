// Package e2e tests Weir from the outside: the binary that users run, in a process of its own, over HTTP and RESP.
//
// Its tests know the documented interface and nothing else. What is right is computed from what the log gives back (or
// from what was sent) by loops that share no code with the engine: truth_test.go. Nodes are killed, drained, starved of
// disk and restarted in between, because the promises are made for exactly those moments.
//
// The binary is built once. WEIR_RACE=1 builds it with the race detector, WEIR_SOAK=1 runs all rounds and rows instead of
// a sample, WEIR_SEED replays a random test, and WEIR_REQUIRE_SERVICES=1 turns a test that has to be skipped (no root for a
// file system of its own) into a failure.
package e2e
