package path

import (
	"slices"

	"github.com/weirstream/weir/internal/event"
	"github.com/weirstream/weir/internal/jsonscan"
)

// Finder looks several paths up in one event after the other, with one walk over the payload's members for all of them.
// One goroutine may use it.
type Finder struct {
	paths   []Path
	members []string // of the payload, each once, that the paths begin with
	member  []int    // of each path among members; -1: none
	values  [][]byte // of the members in the event at hand
}

// NewFinder returns a finder of paths.
func NewFinder(paths []Path) *Finder {
	f := &Finder{paths: paths}
	for _, p := range paths {
		if p.place != placeData || len(p.names) == 0 {
			f.member = append(f.member, -1)
			continue
		}
		at := slices.Index(f.members, p.names[0])
		if at < 0 {
			at = len(f.members)
			f.members = append(f.members, p.names[0])
		}
		f.member = append(f.member, at)
	}
	f.values = make([][]byte, len(f.members))
	return f
}

// Find turns to e. What is appended afterwards aliases nothing of it.
func (f *Finder) Find(e *event.Event) {
	if len(f.members) == 0 {
		return
	}
	if e.Kind != event.DataJSON {
		clear(f.values)
		return
	}
	jsonscan.Members(e.Data, f.members, f.values)
}

// AppendKeyPart is Path.AppendKeyPart of path i in the event that Find has turned to.
func (f *Finder) AppendKeyPart(dst []byte, i int, e *event.Event) (out []byte, ok bool) {
	at := f.member[i]
	if at < 0 {
		return f.paths[i].AppendKeyPart(dst, e)
	}
	raw, ok := jsonscan.Get(f.values[at], f.paths[i].names[1:]...)
	if !ok {
		return dst, false
	}
	return appendKeyPart(dst, raw, KindOf(raw))
}
