// Package traffic generates ad traffic that looks as if people made it: the demo's events and those of benchmarks.
//
// A few users come often and most of them seldom (Zipf); they come in sessions, which are bursts of pages, each with
// some impressions, of which some are viewed and a few clicked. Some events arrive minutes or hours late, as those of
// phones do that were out of reach, and some arrive twice, as producers retry. What Weir is for is all in there, and
// the share of each is known, so a demo and a test can say what must come out.
//
// The same seed gives the same events for the same sequence of clock readings: the clock is passed in with each event.
// Generating allocates nothing.
package traffic

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// Kind is what a user did.
type Kind uint8

// The kinds of events, in the order in which a page gives rise to them.
const (
	PageView   Kind = iota // the page was asked for
	Impression             // an ad was delivered
	View                   // it was visible for a second
	Click                  // it was clicked
)

var kindNames = [...]string{PageView: "page_view", Impression: "impression", View: "view", Click: "click"}

// String returns the kind as the CloudEvents type names it.
func (k Kind) String() string { return kindNames[k] }

var (
	devices   = [...]string{"mobile", "mobile", "mobile", "mobile", "desktop", "desktop", "tablet", "tv"}
	countries = [...]string{"us", "us", "us", "us", "de", "de", "gb", "gb", "fr", "in", "in", "br", "jp", "es", "it", "pl"}
	pages     = [...]string{"home", "news", "sport", "weather", "article", "video", "search", "shop"}
)

// What a session is like.
const (
	pagesMean       = 4.0  // pages of a session: geometric, at least one
	adsPerPageMax   = 3    // impressions of a page: uniform, at least one
	viewShare       = 0.6  // of impressions
	clickShare      = 0.03 // of views
	sessionSeconds  = 90.0 // how long a session takes, roughly
	eventsASession  = pagesMean * (1 + 2*(1+viewShare*(1+clickShare)))
	sessionsMax     = 1 << 16
	recentEvents    = 1 << 10       // a duplicate repeats one of these
	delayMSMax      = 200           // from event to clock where it is not late
	lateMeanMS      = 4 * 60_000    // beyond lateMinMS: exponential
	lateMinMS       = 5_000         // less is not worth the name
	lateMaxMS       = 3 * 3_600_000 // phones that were off for the night are rare
	priceCentsLeast = 20            // of a thousand impressions
	priceCentsRange = 780           // above that
	adZipf          = 1.05          // exponent of the ads' popularity
)

// Options says what traffic there is. The zero value is a demo's.
type Options struct {
	Seed       uint64
	Users      int     // default 100,000
	Zipf       float64 // exponent of the users' activity, above 1; default 1.1
	Ads        int     // default 1,000
	Campaigns  int     // default 100
	Late       float64 // share of events that arrive late; default 0.05, negative is none
	Duplicates float64 // share of events that repeat an earlier one; default 0.01, negative is none
	Rate       float64 // events a second of the clock that will be asked for: how many sessions run at once; default 500
	IDPrefix   string  // of event ids, so that two generators do not share any; default "e"
}

func (o Options) withDefaults() Options {
	o.Users, o.Ads, o.Campaigns = positive(o.Users, 100_000), positive(o.Ads, 1000), positive(o.Campaigns, 100)
	if o.Zipf <= 1 {
		o.Zipf = 1.1
	}
	o.Late, o.Duplicates = share(o.Late, 0.05), share(o.Duplicates, 0.01)
	if o.Rate <= 0 {
		o.Rate = 500
	}
	if o.IDPrefix == "" {
		o.IDPrefix = "e"
	}
	return o
}

func positive(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

func share(s, otherwise float64) float64 {
	if s == 0 {
		return otherwise
	}
	return max(s, 0)
}

// Event is one thing that a user did.
type Event struct {
	Seq        uint64 // the id is IDPrefix-Seq
	Time       int64  // ms since the epoch
	Kind       Kind
	User       uint32
	Ad         uint32 // none with a PageView
	Campaign   uint32 // none with a PageView
	Device     uint8
	Country    uint8
	Page       uint8
	PriceCents uint16 // of a thousand impressions; only with an Impression
	Late       bool   // Time lies further back than it takes to arrive
	Duplicate  bool   // an event with this Seq came before
}

// session is one user's visit.
type session struct {
	user        uint32
	device      uint8
	country     uint8
	page        uint8
	pagesLeft   uint16
	adsLeft     uint8
	ad          uint32
	next        Kind
	initialised bool
}

// Generator makes events. One goroutine may use it.
type Generator struct {
	options  Options
	random   *rand.PCG
	users    *zipf
	ads      *zipf
	order    permutation // of users, so that active ones are not neighbours
	sessions []session
	recent   [recentEvents]Event
	seq      uint64
	clock    timeText
	event    Event
}

// New returns a generator at its first event.
func New(options Options) *Generator {
	options = options.withDefaults()
	g := &Generator{
		options: options,
		random:  rand.NewPCG(options.Seed, 0x9e3779b97f4a7c15),
		users:   newZipf(options.Users, options.Zipf),
		ads:     newZipf(options.Ads, adZipf),
		order:   newPermutation(options.Users),
	}
	running := options.Rate * sessionSeconds / eventsASession
	g.sessions = make([]session, int(min(max(running, 1), sessionsMax)))
	return g
}

// Next returns the next event at the clock's now, in ms since the epoch. It is valid until the next call.
func (g *Generator) Next(now int64) *Event {
	if g.seq > 0 && g.chance(g.options.Duplicates) {
		known := min(g.seq, recentEvents)
		g.event = g.recent[(g.seq-1-g.below(known))%recentEvents]
		g.event.Duplicate = true
		return &g.event
	}
	e := &g.event
	*e = Event{Seq: g.seq, Time: now - int64(g.below(delayMSMax))}
	g.step(&g.sessions[g.below(uint64(len(g.sessions)))], e)
	if g.chance(g.options.Late) {
		e.Late = true
		e.Time = now - min(lateMinMS+int64(g.exponential(lateMeanMS)), lateMaxMS)
	}
	g.recent[g.seq%recentEvents] = *e
	g.seq++
	return e
}

// step lets a visit go on by one event.
func (g *Generator) step(s *session, e *Event) {
	if !s.initialised {
		g.start(s)
	}
	e.Kind, e.User, e.Device, e.Country, e.Page = s.next, s.user, s.device, s.country, s.page
	if s.next != PageView {
		e.Ad, e.Campaign = s.ad, s.ad%uint32(g.options.Campaigns)
	}
	switch {
	case s.next == PageView:
		g.showAd(s, uint8(1+g.below(adsPerPageMax)))
		return
	case s.next == Impression:
		e.PriceCents = uint16(priceCentsLeast + mix(uint64(s.ad))%priceCentsRange)
		if g.chance(viewShare) {
			s.next = View
			return
		}
	case s.next == View && g.chance(clickShare):
		s.next = Click
		return
	}
	g.showAd(s, s.adsLeft-1)
}

// showAd makes the next event an impression, or the next page where no ad is left, or a new visit.
func (g *Generator) showAd(s *session, left uint8) {
	if s.adsLeft = left; left > 0 {
		s.ad, s.next = uint32(g.ads.draw(g.random)), Impression
		return
	}
	if s.pagesLeft--; s.pagesLeft == 0 {
		s.initialised = false
		return
	}
	s.page, s.next = uint8(g.below(uint64(len(pages)))), PageView
}

// start begins a visit of a user, whose device and country are always the same.
func (g *Generator) start(s *session) {
	user := g.order.of(g.users.draw(g.random))
	traits := mix(user)
	*s = session{
		user:        uint32(user),
		device:      uint8(traits % uint64(len(devices))),
		country:     uint8(traits >> 8 % uint64(len(countries))),
		page:        uint8(g.below(uint64(len(pages)))),
		pagesLeft:   uint16(min(1+g.exponential(pagesMean-1+0.5), 100)),
		next:        PageView,
		initialised: true,
	}
}

// AppendNDJSON appends the next event at the clock's now (ms since the epoch) as a CloudEvents object and a newline.
func (g *Generator) AppendNDJSON(dst []byte, now int64) []byte {
	return append(g.AppendJSON(dst, g.Next(now)), '\n')
}

// AppendJSON appends e as a CloudEvents object.
func (g *Generator) AppendJSON(dst []byte, e *Event) []byte {
	dst = append(dst, `{"specversion":"1.0","id":"`...)
	dst = append(append(dst, g.options.IDPrefix...), '-')
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = append(dst, `","source":"/traffic","type":"`...)
	dst = append(dst, e.Kind.String()...)
	dst = append(dst, `","time":"`...)
	dst = g.clock.append(dst, e.Time)
	dst = append(dst, `","data":{"user":"u`...)
	dst = strconv.AppendUint(dst, uint64(e.User), 10)
	if e.Kind != PageView {
		dst = append(dst, `","ad":"a`...)
		dst = strconv.AppendUint(dst, uint64(e.Ad), 10)
		dst = append(dst, `","campaign":"c`...)
		dst = strconv.AppendUint(dst, uint64(e.Campaign), 10)
	}
	dst = append(append(dst, `","page":"`...), pages[e.Page]...)
	dst = append(append(dst, `","device":"`...), devices[e.Device]...)
	dst = append(append(dst, `","country":"`...), countries[e.Country]...)
	dst = append(dst, '"')
	if e.Kind == Impression {
		dst = append(dst, `,"price":`...)
		dst = append(strconv.AppendUint(dst, uint64(e.PriceCents)/100, 10), '.')
		dst = append(dst, byte('0'+e.PriceCents/10%10), byte('0'+e.PriceCents%10))
	}
	return append(dst, '}', '}')
}

func (g *Generator) chance(p float64) bool {
	return p > 0 && float64(g.random.Uint64()>>11)*0x1p-53 < p
}

func (g *Generator) below(n uint64) uint64 { return below(g.random, n) }

func (g *Generator) exponential(mean float64) float64 {
	return -mean * math.Log(1-float64(g.random.Uint64()>>11)*0x1p-53)
}

// HistoryTime is the clock's reading at event i of n, where n events are spread over [from, to) in ms as the days go:
// three times as busy in the evening (UTC) as in the early morning. It does not fall as i grows.
func HistoryTime(from, to, i, n int64) int64 {
	const day = 86_400_000
	// The density is 1 - sin(2π t)/2 on the time of day t; its integral is inverted by a few Newton steps.
	integral := func(t float64) float64 { return t + math.Cos(2*math.Pi*t)/(4*math.Pi) }
	first, last := float64(from)/day, float64(to)/day
	want := integral(first) + (integral(last)-integral(first))*float64(i)/float64(n)
	t := first + (last-first)*float64(i)/float64(n)
	for range 8 {
		t -= (integral(t) - want) / (1 - math.Sin(2*math.Pi*t)/2)
	}
	return min(max(int64(t*day), from), to-1)
}
