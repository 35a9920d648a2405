package traffic

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// BenchOptions says what events a benchmark sends.
type BenchOptions struct {
	Seed    uint64
	Users   int     // default 10,000,000, at most 10^8
	Zipf    float64 // exponent of the users' activity, above 1; 0 is uniform
	Ads     int     // default 1,000, at most 10^4
	Late    float64 // share of events that are minutes or hours late
	Stream  string  // that XADD names; default "events"
	FirstID uint64  // of the ids, which count up from it: give each client a range of its own
}

// Digits of the numbers in a benchmark's event: they have a fixed width, so that an event is a template with holes.
const (
	idDigits   = 12
	userDigits = 8
	adDigits   = 4
	benchUsers = 10_000_000
	benchAds   = 1000

	benchUsersMax = 100_000_000 // what userDigits can tell apart
	benchAdsMax   = 10_000      // what adDigits can tell apart
)

// Placeholders in a template. None of them occurs otherwise.
const (
	idHole   = "IIIIIIIIIIII"
	timeHole = "TTTTTTTTTTTTTTTTTTTTTTTT"
	userHole = "UUUUUUUU"
	adHole   = "AAAA"
)

// Bench makes events of one fixed shape and about 200 bytes as cheaply as it can, because a benchmark's client shares
// the machine with the server. One goroutine may use it.
type Bench struct {
	users  int
	ads    uint64
	late   float64
	random *rand.PCG
	zipf   *zipf // nil is uniform
	order  permutation
	id     uint64
	clock  timeText
	ndjson template
	xadd   template
}

// template is an event with holes at fixed places.
type template struct {
	text               []byte
	id, time, user, ad int
}

// NewBench returns a generator at its first event.
func NewBench(o BenchOptions) *Bench {
	o.Users = min(positive(o.Users, benchUsers), benchUsersMax)
	o.Ads = min(positive(o.Ads, benchAds), benchAdsMax)
	if o.Stream == "" {
		o.Stream = "events"
	}
	b := &Bench{
		users: o.Users, ads: uint64(o.Ads), late: o.Late, order: newPermutation(o.Users), id: o.FirstID,
		random: rand.NewPCG(o.Seed, 0xbf58476d1ce4e5b9),
	}
	if o.Zipf > 1 {
		b.zipf = newZipf(o.Users, o.Zipf)
	}
	data := `{"user":"u` + userHole + `","ad":"a` + adHole + `","campaign":"c042","device":"mobile","country":"de","price":1.25}`
	b.ndjson = newTemplate(`{"id":"b-` + idHole + `","source":"/bench","type":"impression","time":"` + timeHole +
		`","data":` + data + "}\n")
	words := []string{"XADD", o.Stream, "*", "id", "b-" + idHole, "type", "impression", "time", timeHole, "data", data}
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += "$" + strconv.Itoa(len(word)) + "\r\n" + word + "\r\n"
	}
	b.xadd = newTemplate(text)
	return b
}

func newTemplate(text string) template {
	t := template{text: []byte(text)}
	t.id = bytes.Index(t.text, []byte(idHole))
	t.time = bytes.Index(t.text, []byte(timeHole))
	t.user = bytes.Index(t.text, []byte(userHole))
	t.ad = bytes.Index(t.text, []byte(adHole))
	return t
}

// AppendNDJSON appends the next event at the clock's now (ms since the epoch) as a CloudEvents object and a newline.
func (b *Bench) AppendNDJSON(dst []byte, now int64) []byte { return b.append(dst, &b.ndjson, now) }

// AppendXADD appends the next event at the clock's now (ms since the epoch) as a RESP command.
func (b *Bench) AppendXADD(dst []byte, now int64) []byte { return b.append(dst, &b.xadd, now) }

func (b *Bench) append(dst []byte, t *template, now int64) []byte {
	at := len(dst)
	dst = append(dst, t.text...)
	out := dst[at:]
	var user uint64
	if b.zipf != nil {
		user = b.order.of(b.zipf.draw(b.random))
	} else {
		user = below(b.random, uint64(b.users))
	}
	if b.late > 0 && float64(b.random.Uint64()>>11)*0x1p-53 < b.late {
		now -= lateMinMS + int64(below(b.random, 2*lateMeanMS))
	}
	putDigits(out[t.id:t.id+idDigits], b.id)
	b.id++
	b.clock.append(out[t.time:t.time:t.time+timeBytes], now)
	putDigits(out[t.user:t.user+userDigits], user)
	putDigits(out[t.ad:t.ad+adDigits], below(b.random, b.ads))
	return dst
}

// putDigits fills dst with n in decimal, cutting off what does not fit.
func putDigits(dst []byte, n uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}
