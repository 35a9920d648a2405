package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirstream/weir/internal/slide"
)

// A table against a map, over many epochs of very different sizes.
func TestTable(t *testing.T) {
	eachSeed(t, 3, func(t *testing.T, r *rand.Rand) {
		table, err := newTable(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		var sorted order
		for range 20 {
			want := map[string][]slide.Entry{}
			for range r.IntN(1 << r.IntN(13)) {
				parts := [][]byte{[]byte(fmt.Sprint("user-", r.IntN(3000))), {byte(r.IntN(2)), 0, 0}}
				if r.IntN(2) == 0 {
					parts[0] = bytes.Repeat([]byte{0}, r.IntN(20))
				}
				key := AppendKey(nil, CounterID(1, 2), parts...)
				if !table.room(1, len(key)) {
					break
				}
				e := slide.Entry{TS: r.Int64(), FP: r.Uint64()}
				table.add(HashKey(key), key, e)
				want[string(key)] = append(want[string(key)], e)
			}
			if table.entryLen != len(want) {
				t.Fatalf("got %d keys; want %d", table.entryLen, len(want))
			}
			for key, entries := range want {
				got := table.appendArrivals(nil, HashKey([]byte(key)), []byte(key))
				slices.Reverse(got)
				if !slices.Equal(got, entries) {
					t.Fatalf("key %x: got %v; want %v", key, got, entries)
				}
			}
			var last []byte
			for _, item := range sorted.sort(table) {
				key := table.keyOf(&table.entries[item.index])
				if last != nil && bytes.Compare(last, key) >= 0 {
					t.Fatalf("%x does not sort behind %x", key, last)
				}
				last = key
			}
			table.reset()
			if got := table.appendArrivals(nil, HashKey(last), last); len(got) != 0 {
				t.Fatalf("got %v from an empty table", got)
			}
		}
		if err := table.free(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTableHasABound(t *testing.T) {
	table, err := newTable(tableBytesMin)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for key := AppendKey(nil, 16, []byte("0")); table.room(1, len(key)); key = AppendKey(nil, 16, fmt.Append(nil, n)) {
		table.add(HashKey(key), key, slide.Entry{})
		n++
	}
	if used := table.size(); used > tableBytesMin || used < tableBytesMin*9/10 || n < 900 {
		t.Fatalf("got %d keys in %d bytes; want nearly %d", n, used, tableBytesMin)
	}
}

// A cache against a map: it may forget, but never remembers anything else, and what was looked up stays longer.
func TestCache(t *testing.T) {
	eachSeed(t, 3, func(t *testing.T, r *rand.Rand) {
		c, err := newCache(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		type stored struct {
			value string
			epoch uint64
		}
		want := map[string]stored{}
		hits := 0
		for i := range 60_000 {
			key := fmt.Append(nil, "key-", int(r.ExpFloat64()*2000))
			hash := HashKey(key)
			switch r.IntN(8) {
			case 0, 1:
				value := bytes.Repeat([]byte{byte(i)}, r.IntN(200))
				c.put(hash, key, value, uint64(i))
				want[string(key)] = stored{string(value), uint64(i)}
			case 2:
				value, used, ok := c.take(nil, hash, key)
				if ok && used && string(value) != want[string(key)].value {
					t.Fatalf("take: got %q; want %q", value, want[string(key)].value)
				}
				delete(want, string(key))
			case 3:
				c.drop(hash, key)
				delete(want, string(key))
			default:
				value, epoch, ok := c.get([]byte("x"), hash, key)
				w, known := want[string(key)]
				if ok && (!known || string(value) != "x"+w.value || epoch != w.epoch) {
					t.Fatalf("get: got %q of epoch %d; want %q of %d (%v)", value, epoch, w.value, w.epoch, known)
				}
				if ok {
					hits++
				}
			}
		}
		if hits < 1000 {
			t.Errorf("got %d hits; want a cache that remembers", hits)
		}
		if err := c.free(); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := c.get(nil, 1, []byte("k")); ok {
			t.Error("got something from a cache that was freed")
		}
	})
}

// The working set that is looked up survives a scan of keys that are not.
func TestCacheKeepsWhatIsUsed(t *testing.T) {
	c, err := newCache(256 << 10)
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 64)
	key := func(n int) ([]byte, uint64) { k := fmt.Append(nil, "k", n); return k, HashKey(k) }
	for i := range 100 {
		k, h := key(i)
		c.put(h, k, value, 1)
	}
	kept := 0
	for i := 100; i < 20_000; i++ {
		k, h := key(i)
		c.put(h, k, value, 1)
		k, h = key(i % 100)
		c.get(nil, h, k)
	}
	for i := range 100 {
		k, h := key(i)
		if _, _, ok := c.get(nil, h, k); ok {
			kept++
		}
	}
	if kept < 90 {
		t.Errorf("got %d of 100 keys that were looked up all the time; want nearly all", kept)
	}
}

func TestFoldSlotsReachEveryKey(t *testing.T) {
	f := make(foldSlotsArray, foldSlots)
	// Two keys of one slot that take turns.
	reads := map[uint64]int{}
	for turn := range uint64(10_000) {
		hash := turn % 2 << 40
		if f.due(hash, 1, foldCheckMax, turn) {
			reads[hash]++
		}
	}
	for hash, n := range reads {
		if n < 50 {
			t.Errorf("key %x: read %d times in 5,000 arrivals; want about 100", hash, n)
		}
	}
	if len(reads) != 2 {
		t.Errorf("got reads of %d keys; want both", len(reads))
	}
}
