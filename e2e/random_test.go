package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// soak says that everything is run, not a sample.
func soak() bool { return os.Getenv("WEIR_SOAK") == "1" }

// randomFor returns the test's source of randomness. The seed is $WEIR_SEED or new, and printed with the command that replays it.
func randomFor(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("WEIR_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("cannot use WEIR_SEED: got %q; want a number", text)
		}
		seed = given
	}
	soaking := ""
	if soak() {
		soaking = " WEIR_SOAK=1"
	}
	t.Logf("seed %d; replay: WEIR_SEED=%d%s go test ./e2e -count=1 -run '^%s$'", seed, seed, soaking, t.Name())
	return rand.New(rand.NewPCG(seed, 0))
}
