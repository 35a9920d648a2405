package counter

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/weirstream/weir/internal/eventlog"
)

// A counter that has answered answers again once the set has caught up, whatever a crash took: it is never built anew,
// which nobody would wait for.
func TestAnsweringCountersAnswerAfterACrash(t *testing.T) {
	for seed := range uint64(20) {
		answerAfterCrashes(t, rand.New(rand.NewPCG(seed, 7)))
	}
}

func answerAfterCrashes(t *testing.T, r *rand.Rand) {
	defs := testDefinitions()
	n := newNode(t, defs[:1]...)
	n.open()
	tr := &traffic{r: r, now: testStart}
	n.append(eventlog.AckDisk, tr.some(500)...)
	n.crash(r)
	n.mustAnswer(defs[:1])

	n.must(n.set.Close())
	n.defs = defs // the rest is built from the log
	n.openSet()
	for i := range defs {
		n.lookup(defs[i].Name, make([]string, len(defs[i].Key)), testStart, new(Answer)) // waits until it is built
	}
	n.crash(r)
	n.mustAnswer(defs)
	n.close()
}

// mustAnswer catches up and looks every counter up, without patience.
func (n *node) mustAnswer(defs []Definition) {
	n.t.Helper()
	n.must(n.set.WaitCaughtUp(context.Background()))
	for i := range defs {
		c, _ := n.set.Counter(defs[i].Name)
		if err := c.Lookup(context.Background(), make([][]byte, len(defs[i].Key)), testStart, new(Answer)); err != nil {
			n.t.Errorf("%s: %v; want an answer", defs[i].Name, err)
		}
	}
}
