package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// validate checks what spans several settings. It runs also after mistakes, on the defaults in their place.
func (r *reader) validate() {
	r.checkListen()
	if l := r.cfg.Limits; l.EventBytes > l.BodyBytes {
		r.misfit("limits.event", fmt.Sprintf("an event of %s cannot arrive in a body of %s", FormatSize(l.EventBytes), FormatSize(l.BodyBytes)), "lower limits.event or raise limits.body")
	}
	names := map[string]int{}
	for i := range r.cfg.Counters {
		r.checkCounter(i, names)
	}
	r.checkMemory()
}

// misfit notes a mistake at the place where path, or the section around it, was given.
func (r *reader) misfit(path, message, cure string) {
	r.mistake(path, r.where(path), message, cure)
}

func (r *reader) checkListen() {
	l := r.cfg.Listen
	seen := map[string]string{}
	for _, a := range []struct{ path, address string }{
		{"listen.http", l.HTTP}, {"listen.resp", l.RESP}, {"listen.admin", l.Admin},
	} {
		if a.address == "" {
			continue // only admin: the others have defaults
		}
		host, port, err := splitAddress(a.address)
		if err != nil {
			r.misfit(a.path, fmt.Sprintf("want host:port, got %q", a.address), "write it as 127.0.0.1:7330, with a port from 0 (any free one) to 65535")
			continue
		}
		if other, ok := seen[a.address]; ok && port != 0 {
			r.misfit(a.path, fmt.Sprintf("has the address of %s, %s", other, a.address), "give each its own port")
		}
		seen[a.address] = a.path
		r.checkReach(a.path, host)
	}
}

// checkReach refuses addresses that others than this machine reach, unless that was asked for.
func (r *reader) checkReach(path, host string) {
	switch {
	case isLoopback(host):
	case path == "listen.admin":
		r.misfit(path, "the admin address must be a loopback one: it shows the inside of the process", "listen on 127.0.0.1 and reach it through ssh -L")
	case !r.cfg.Listen.Insecure:
		r.misfit(path, fmt.Sprintf("%q is reached from other machines, and this version of Weir has neither passwords nor TLS", host), "listen on 127.0.0.1, or, if the network itself keeps strangers out, add listen.insecure: true")
	}
}

var errPort = errors.New("want a port from 0 to 65535")

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, errPort
	}
	return host, int(n), nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (r *reader) checkCounter(i int, names map[string]int) {
	c, path := &r.cfg.Counters[i], fmt.Sprintf("counters[%d]", i)
	if !r.unnoted(path) {
		return // it is no section at all
	}
	if c.Name == "" && !r.given(path+".name") {
		r.misfit(path, "the counter has no name", "add name:, which look-ups ask for")
	}
	if first, ok := names[c.Name]; ok && c.Name != "" {
		r.misfit(path+".name", fmt.Sprintf("counters[%d] has the name %q too", first, c.Name), "give each counter its own name")
	} else {
		names[c.Name] = i
	}
	s := r.checkCounterStream(c, path)
	r.checkKey(c, path)
	longest := r.checkWindows(c, path)
	if s != nil && longest > 0 && longest+c.LatenessMS > s.RetentionMS {
		r.warn(path, fmt.Sprintf("the longest window and lateness reach back %s, but stream %s keeps %s: rebuilt from the log, the counter would not be exact for all of it", FormatDuration(longest+c.LatenessMS), s.Name, FormatDuration(s.RetentionMS)),
			fmt.Sprintf("set streams.%s.retention to at least %s, or lower lateness", s.Name, FormatDuration(longest+c.LatenessMS)))
	}
}

func (r *reader) checkCounterStream(c *Counter, path string) *Stream {
	if c.Stream == "" {
		if !r.given(path + ".stream") {
			r.misfit(path, "the counter has no stream", "add stream:, the stream whose events it counts")
		}
		return nil
	}
	s, ok := r.cfg.Stream(c.Stream)
	if !ok {
		names := make([]string, len(r.cfg.Streams))
		for i := range r.cfg.Streams {
			names[i] = r.cfg.Streams[i].Name
		}
		r.misfit(path+".stream", fmt.Sprintf("there is no stream %q", c.Stream), "name one of "+strings.Join(names, ", ")+", or add it to streams:")
	}
	return s
}

func (r *reader) checkKey(c *Counter, path string) {
	switch {
	case len(c.Key) == 0:
		if r.unnoted(path + ".key") {
			r.misfit(path+".key", "the counter has no key", "add key: [data.user], the paths that tell its counts apart")
		}
	case len(c.Key) > keyPartsMax:
		r.misfit(path+".key", fmt.Sprintf("has %d parts, more than %d", len(c.Key), keyPartsMax), "let producers join some of them into one field")
	}
	seen := map[string]bool{}
	for j, part := range c.Key {
		if part != "" && seen[part] {
			r.misfit(fmt.Sprintf("%s.key[%d]", path, j), fmt.Sprintf("%s stands in the key twice", part), "remove one")
		}
		seen[part] = true
	}
}

// checkWindows returns the longest window in ms, 0 if there is none.
func (r *reader) checkWindows(c *Counter, path string) (longest int64) {
	switch {
	case len(c.Windows) == 0:
		if r.unnoted(path + ".windows") {
			r.misfit(path+".windows", "the counter has no windows", "add windows: [1h, 1d], the lengths it answers for")
		}
	case len(c.Windows) > windowsMax:
		r.misfit(path+".windows", fmt.Sprintf("has %d windows, more than %d", len(c.Windows), windowsMax), "keep those that somebody asks for")
	}
	seen := map[int64]string{}
	for j, w := range c.Windows {
		if w.Millis == 0 {
			continue // noted already
		}
		if first, ok := seen[w.Millis]; ok {
			r.misfit(fmt.Sprintf("%s.windows[%d]", path, j), fmt.Sprintf("%s is as long as %s", w.Name, first), "remove one of the two")
		} else {
			seen[w.Millis] = w.Name
		}
		longest = max(longest, w.Millis)
	}
	return longest
}

// given says that the setting was written, rightly or wrongly.
func (r *reader) given(path string) bool {
	_, ok := r.places[path]
	return ok
}

// unnoted says that nothing was noted about path yet.
func (r *reader) unnoted(path string) bool {
	for i := range r.mistakes {
		if r.mistakes[i].Path == path {
			return false
		}
	}
	return true
}
