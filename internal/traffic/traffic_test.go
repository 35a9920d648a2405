package traffic

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const noon = int64(1_796_040_000_000)

// line is an event as a reader that knows JSON only sees it.
type line struct {
	SpecVersion, ID, Source, Type string
	Time                          time.Time
	Data                          struct {
		User, Ad, Campaign, Page, Device, Country string
		Price                                     float64
	}
}

func parse(t *testing.T, b []byte) line {
	t.Helper()
	var l line
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return l
}

func TestSameSeedSameEvents(t *testing.T) {
	sum := func(seed uint64) uint64 {
		g, h := New(Options{Seed: seed}), fnv.New64a()
		b := NewBench(BenchOptions{Seed: seed, Zipf: 1.1, Late: 0.05})
		var buf []byte
		for i := range int64(20_000) {
			buf = b.AppendNDJSON(g.AppendNDJSON(buf[:0], noon+i*2), noon+i*2)
			h.Write(buf)
		}
		return h.Sum64()
	}
	first, again := sum(1), sum(1)
	if first != again {
		t.Error("the same seed gave other events")
	}
	if first == sum(2) {
		t.Error("another seed gave the same events")
	}
}

// TestShape counts what 60,000 events are made of. The seed is fixed, so the counts are; the bounds say what must
// hold when the generator is changed.
func TestShape(t *testing.T) {
	const n = 60_000
	g := New(Options{Seed: 7, Rate: 50})
	kinds := map[string]int{}
	users, ads := map[string]int{}, map[string]int{}
	seen := map[string]line{}
	var buf []byte
	late, duplicates, veryLate := 0, 0, 0
	for i := range int64(n) {
		now := noon + i*2
		buf = g.AppendNDJSON(buf[:0], now)
		if bytes.Count(buf, []byte{'\n'}) != 1 || buf[len(buf)-1] != '\n' {
			t.Fatalf("not one line: %q", buf)
		}
		l := parse(t, buf)
		if first, ok := seen[l.ID]; ok {
			if first != l {
				t.Fatalf("a duplicate differs:\n%+v\n%+v", first, l)
			}
			duplicates++
			continue
		}
		seen[l.ID] = l
		lag := now - l.Time.UnixMilli()
		if lag < 0 || lag > lateMaxMS {
			t.Fatalf("event %s lies %d ms before the clock", l.ID, lag)
		}
		if lag > delayMSMax {
			late++
		}
		if lag > 10*60_000 {
			veryLate++
		}
		kinds[l.Type]++
		users[l.Data.User]++
		if l.Type == "page_view" != (l.Data.Ad == "") || (l.Type == "impression") != (l.Data.Price > 0) {
			t.Fatalf("fields do not fit the type: %s", buf)
		}
		if l.Type == "impression" {
			ads[l.Data.Ad]++
		}
	}
	between := func(what string, got, low, high float64) {
		t.Helper()
		if got < low || got > high {
			t.Errorf("%s: got %.4f; want %v to %v", what, got, low, high)
		}
	}
	unique := float64(len(seen))
	between("duplicates", float64(duplicates)/n, 0.009, 0.011)
	between("late", float64(late)/unique, 0.047, 0.053)
	between("later than 10 min, of late ones", float64(veryLate)/float64(late), 0.07, 0.1)
	between("page views", float64(kinds["page_view"])/unique, 0.2, 0.26)
	between("impressions a page", float64(kinds["impression"])/float64(kinds["page_view"]), 1.9, 2.1)
	between("views an impression", float64(kinds["view"])/float64(kinds["impression"]), 0.58, 0.62)
	between("clicks a view", float64(kinds["click"])/float64(kinds["view"]), 0.02, 0.04)
	between("busiest user's share", topShare(users, 1, unique), 0.05, 0.2)
	between("hundred busiest users' share", topShare(users, 100, unique), 0.4, 0.7)
	between("users", float64(len(users)), 500, 10_000)
	between("busiest ad's share", topShare(ads, 1, float64(kinds["impression"])), 0.1, 0.18)
	between("ads", float64(len(ads)), 950, 1000)
}

// topShare is the share that the top keys have of all.
func topShare(counts map[string]int, top int, all float64) float64 {
	var list []int
	for _, n := range counts {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b int) int { return b - a })
	sum := 0
	for _, n := range list[:top] {
		sum += n
	}
	return float64(sum) / all
}

// TestSessionsAreBursts looks at one user of average activity: its events come close together, and it has one device.
func TestSessionsAreBursts(t *testing.T) {
	g := New(Options{Seed: 3, Duplicates: -1, Late: -1})
	times := map[uint32][]int64{}
	device := map[uint32]uint8{}
	for i := range int64(100_000) {
		e := g.Next(noon + i*2)
		times[e.User] = append(times[e.User], e.Time)
		if d, ok := device[e.User]; ok && d != e.Device {
			t.Fatalf("user %d changed its device", e.User)
		}
		device[e.User] = e.Device
	}
	near, all := 0, 0
	for _, list := range times {
		slices.Sort(list)
		if len(list) > 200 {
			continue // in several sessions at once
		}
		for i := 1; i < len(list); i++ {
			all++
			if list[i]-list[i-1] < 60_000 {
				near++
			}
		}
	}
	if got := float64(near) / float64(all); got < 0.9 {
		t.Errorf("%.3f of the gaps are below a minute; want 0.9", got)
	}
}

// TestZipfAgainstItsDefinition compares draws with the probabilities summed up one by one.
func TestZipfAgainstItsDefinition(t *testing.T) {
	const n, s, draws = 50_000, 1.1, 400_000
	z, random := newZipf(n, s), rand.NewPCG(1, 2)
	sum := 0.0
	for k := 1; k <= n; k++ {
		sum += math.Pow(float64(k), -s)
	}
	counts := make([]int, n)
	for range draws {
		counts[z.draw(random)]++
	}
	for from := 0; from < n; from = max(from+1, from*3/2) {
		to := min(max(from+1, from*3/2), n)
		want, got := 0.0, 0
		for k := from; k < to; k++ {
			want += math.Pow(float64(k+1), -s) / sum * draws
			got += counts[k]
		}
		if d := math.Abs(float64(got) - want); d > 5*math.Sqrt(want) {
			t.Errorf("ranks %d to %d: got %d; want %.0f", from, to, got, want)
		}
	}
}

func TestPermutation(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 1000, 65_536, 99_999} {
		p, seen := newPermutation(n), make([]bool, n)
		for i := range n {
			seen[p.of(uint64(i))] = true
		}
		if slices.Contains(seen, false) {
			t.Errorf("n = %d: not a permutation", n)
		}
	}
}

func TestTimeText(t *testing.T) {
	var text timeText
	for _, ms := range []int64{0, 1, 86_399_999, 86_400_000, noon, noon + 12_345_678, 951_782_399_999, noon} {
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := string(text.append(nil, ms)); got != want {
			t.Errorf("%d: got %s; want %s", ms, got, want)
		}
	}
}

func TestHistoryTime(t *testing.T) {
	const n, week = 100_000, 7 * 86_400_000
	hours := [24]int{}
	last := noon - week
	for i := range int64(n) {
		at := HistoryTime(noon-week, noon, i, n)
		if at < last || at >= noon {
			t.Fatalf("event %d at %d; the one before was at %d", i, at, last)
		}
		last = at
		hours[at/3_600_000%24]++
	}
	if ratio := float64(hours[18]) / float64(hours[6]); ratio < 2.5 || ratio > 3.5 {
		t.Errorf("18:00 is %.2f times as busy as 6:00; want 3", ratio)
	}
	if noon-last > 60_000 {
		t.Errorf("the last event lies %d ms before the end", noon-last)
	}
}

func TestBenchEvents(t *testing.T) {
	b := NewBench(BenchOptions{Seed: 1, Zipf: 1.1, FirstID: 5_000_000})
	buf := b.AppendNDJSON(nil, noon)
	if len(buf) < 190 || len(buf) > 210 {
		t.Errorf("%d bytes; want about 200: %s", len(buf), buf)
	}
	l := parse(t, buf)
	if l.ID != "b-000005000000" || l.Type != "impression" || l.Time.UnixMilli() != noon || len(l.Data.User) != 9 || len(l.Data.Ad) != 5 {
		t.Errorf("got %+v", l)
	}
	words := strings.Split(string(b.AppendXADD(nil, noon)), "\r\n")
	if words[0] != "*11" || words[2] != "XADD" || words[4] != "events" || words[10] != "b-000005000001" {
		t.Errorf("got %q", words)
	}
	for i := 1; i+1 < len(words); i += 2 {
		if words[i] != "$"+itoa(len(words[i+1])) {
			t.Errorf("length %s of %q", words[i], words[i+1])
		}
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// TestBenchUsers wants the head that Zipf(1.1) over ten million has, and a uniform set that is spread evenly.
func TestBenchUsers(t *testing.T) {
	const n = 50_000
	for _, c := range []struct{ zipf, low, high float64 }{{1.1, 0.112, 0.121}, {0, 0, 0.0001}} {
		b := NewBench(BenchOptions{Seed: 5, Zipf: c.zipf, Late: 0.05})
		at := b.ndjson.user
		counts := map[string]int{}
		var buf []byte
		for range n {
			buf = b.AppendNDJSON(buf[:0], noon)
			counts[string(buf[at:at+userDigits])]++
		}
		if got := topShare(counts, 1, n); got < c.low || got > c.high {
			t.Errorf("zipf %v: the busiest user has %.5f; want %v to %v", c.zipf, got, c.low, c.high)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	g, b := New(Options{}), NewBench(BenchOptions{Zipf: 1.1, Late: 0.05})
	buf := make([]byte, 0, 1024)
	now := noon
	if n := testing.AllocsPerRun(1000, func() {
		now++
		buf = b.AppendXADD(b.AppendNDJSON(g.AppendNDJSON(buf[:0], now), now), now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	g := New(Options{})
	zipf, uniform := NewBench(BenchOptions{Zipf: 1.1}), NewBench(BenchOptions{})
	for _, c := range []struct {
		name string
		f    func([]byte, int64) []byte
	}{{"demo", g.AppendNDJSON}, {"zipf", zipf.AppendNDJSON}, {"zipf/xadd", zipf.AppendXADD}, {"uniform", uniform.AppendNDJSON}} {
		b.Run(c.name, func(b *testing.B) {
			buf := make([]byte, 0, 1024)
			for i := range b.N {
				buf = c.f(buf[:0], noon+int64(i))
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}
