package config

import (
	"fmt"
	"strings"
)

// root reads the whole file.
func (r *reader) root(v value) {
	r.section(v, append(r.settings(""),
		field{"listen", func(v value) { r.section(v, r.settings("listen")) }},
		field{"limits", func(v value) { r.section(v, r.settings("limits")) }},
		field{"streams", r.streams},
		field{"counters", r.counters},
	))
}

// settings returns the single-valued settings of one section outside streams and counters: those that flags and the
// environment can replace.
func (r *reader) settings(section string) []field {
	switch section {
	case "":
		return []field{
			{"data", func(v value) { r.text(v, &r.cfg.Data) }},
			{"memory", func(v value) { r.size(v, &r.cfg.MemoryBytes, memoryBytesMin, memoryBytesMax) }},
		}
	case "listen":
		l := &r.cfg.Listen
		return []field{
			{"http", func(v value) { r.text(v, &l.HTTP) }},
			{"resp", func(v value) { r.text(v, &l.RESP) }},
			{"admin", func(v value) { r.text(v, &l.Admin) }},
			{"insecure", func(v value) { r.boolean(v, &l.Insecure) }},
		}
	case "limits":
		l := &r.cfg.Limits
		return []field{
			{"body", func(v value) { r.size(v, &l.BodyBytes, bodyBytesMin, bodyBytesMax) }},
			{"event", func(v value) { r.size(v, &l.EventBytes, eventBytesMin, eventBytesMax) }},
			{"batch", func(v value) { r.integer(v, &l.Batch, batchMin, batchMax) }},
			{"key_part", func(v value) { r.integer(v, &l.KeyPartBytes, keyPartBytesMin, keyPartBytesMax) }},
			{"connections", func(v value) { r.integer(v, &l.Connections, connectionsMin, connectionsMax) }},
		}
	}
	return nil
}

// override lets the environment, then the flags, replace settings.
func (r *reader) override(flags []Flag) {
	known := map[string]field{}
	for _, section := range []string{"", "listen", "limits"} {
		for _, f := range r.settings(section) {
			path := join(section, f.name)
			known[path] = f
			name := "WEIR_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
			if r.env == nil {
				continue
			}
			if text, ok := r.env(name); ok && text != "" {
				f.read(value{path: path, text: text, at: place{excerpt: name + "=" + text}})
			}
		}
	}
	for _, flag := range flags {
		at := place{excerpt: flag.Name + " " + flag.Value}
		f, ok := known[flag.Path]
		if !ok {
			r.mistake(flag.Path, at, "not a setting that a flag can give", "set it in the file")
			continue
		}
		f.read(value{path: flag.Path, text: flag.Value, at: at})
	}
}

func (r *reader) streams(v value) {
	many := false
	r.entries(v, func(name string, key place, child value) {
		if len(r.cfg.Streams) == streamsMax {
			if !many {
				r.mistake(child.path, key, fmt.Sprintf("more than %d streams", streamsMax), "tell events apart by type or source inside one stream")
			}
			many = true
			return
		}
		r.checkName(child.path, name, key)
		s := baseStream(name)
		r.section(child, r.streamFields(&s))
		r.cfg.Streams = append(r.cfg.Streams, s)
	})
}

func (r *reader) streamFields(s *Stream) []field {
	return []field{
		{"partitions", func(v value) { r.integer(v, &s.Partitions, partitionsMin, partitionsMax) }},
		{"segment", func(v value) { r.path(v, &s.Segment) }},
		{"retention", func(v value) { r.duration(v, &s.RetentionMS, retentionMSMin, retentionMSMax) }},
		{"ring", func(v value) {
			r.section(v, []field{
				{"age", func(v value) { r.duration(v, &s.Ring.AgeMS, ringAgeMSMin, ringAgeMSMax) }},
				{"bytes", func(v value) {
					s.Ring.defaulted = !r.size(v, &s.Ring.Bytes, ringBytesMin, ringBytesMax)
				}},
			})
		}},
		{"dedup", func(v value) {
			r.section(v, []field{
				{"window", func(v value) { r.duration(v, &s.Dedup.WindowMS, 0, dedupWindowMSMax) }},
				{"max_ids", func(v value) {
					s.Dedup.defaulted = !r.integer(v, &s.Dedup.MaxIDs, 0, dedupMaxIDsMax)
				}},
			})
		}},
		{"time", func(v value) {
			r.section(v, []field{
				{"skew", func(v value) { r.duration(v, &s.Time.SkewMS, 0, skewMSMax) }},
				{"future", func(v value) { r.future(v, &s.Time.Future) }},
				{"unit_check", func(v value) { r.boolean(v, &s.Time.UnitCheck) }},
			})
		}},
	}
}

func (r *reader) counters(v value) {
	r.list(v, func(i int, child value) {
		if i == countersMax {
			r.mistake(child.path, r.where(child.path), fmt.Sprintf("more than %d counters", countersMax), "let one counter answer for several windows")
		}
		if i >= countersMax {
			return
		}
		c := baseCounter()
		r.section(child, r.counterFields(&c))
		r.cfg.Counters = append(r.cfg.Counters, c)
	})
}

func (r *reader) counterFields(c *Counter) []field {
	return []field{
		{"name", func(v value) {
			if text, at, ok := r.scalar(v); ok {
				c.Name = text
				r.checkName(v.path, text, at)
			}
		}},
		{"stream", func(v value) { r.text(v, &c.Stream) }},
		{"where", func(v value) { r.condition(v, &c.Where) }},
		{"key", func(v value) {
			r.list(v, func(_ int, part value) {
				var text string
				r.path(part, &text)
				c.Key = append(c.Key, text)
			})
		}},
		{"windows", func(v value) {
			r.list(v, func(_ int, w value) { c.Windows = append(c.Windows, r.window(w)) })
		}},
		{"measure", func(v value) { r.measure(v, &c.Measure) }},
		{"lateness", func(v value) { r.duration(v, &c.LatenessMS, 0, latenessMSMax) }},
		{"dedup_ids", func(v value) { r.integer(v, &c.DedupIDs, dedupIDsMin, dedupIDsMax) }},
	}
}

// window returns the window that v describes; its Millis are 0 when v is a mistake, which is noted.
func (r *reader) window(v value) Window {
	var w Window
	text, _, ok := r.scalar(v)
	if ok && r.duration(v, &w.Millis, windowMSMin, windowMSMax) {
		w.Name = text
	}
	return w
}
