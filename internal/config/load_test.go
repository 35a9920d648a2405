package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// environment is what the golden cases see.
func environment(name string) (string, bool) {
	value, ok := map[string]string{"PORT": "9000", "EMPTY": "", "TRICKY": "x\ncounters: []"}[name]
	return value, ok
}

func none(string) (string, bool) { return "", false }

// TestMistakes compares the whole text of every mistake with testdata/NAME.txt.
func TestMistakes(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("got %v, %v; want the bad files of testdata", inputs, err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			source, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			_, warnings, err := Parse("weir.yaml", source, environment)
			if err != nil {
				got.WriteString(err.Error() + "\n")
			}
			for _, w := range warnings {
				got.WriteString("warning: " + w.Format("weir.yaml"))
			}
			golden := strings.TrimSuffix(input, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s\nIf the change is meant: go test ./internal/config -run Mistakes -update", got.String(), want)
			}
		})
	}
}

const full = `
data: /var/lib/weir
listen: {http: "0.0.0.0:80", resp: "[::1]:7000", admin: localhost:6060, insecure: true}
memory: 2GiB
limits: {body: 8MiB, event: 512KiB, batch: 1000, key_part: 64, connections: 10}
streams:
  impressions:
    partitions: 8
    segment: data.user
    retention: 16d
    ring: {age: 2s, bytes: 128MiB}
    dedup: {window: 5m, max_ids: 1000}
    time: {skew: 1m, future: clamp, unit_check: false}
  clicks:
counters:
  - name: seen
    stream: impressions
    where: type == "impression"
    key: [data.user, data.ad]
    windows: [1m, 1h, 24h, 7d]
    measure: count
    lateness: 1w
    dedup_ids: 5000
  - {name: by-user, stream: clicks, key: [data.user], windows: [1h30m]}
`

func TestEverySetting(t *testing.T) {
	got, warnings, err := Parse("weir.yaml", []byte(full), none)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	clicks := baseStream("clicks")
	clicks.Ring.Bytes, clicks.Dedup.MaxIDs = 256<<20, 1_000_000
	want := &Config{
		Data:        "/var/lib/weir",
		Listen:      Listen{HTTP: "0.0.0.0:80", RESP: "[::1]:7000", Admin: "localhost:6060", Insecure: true},
		MemoryBytes: 2 << 30,
		Limits:      Limits{BodyBytes: 8 << 20, EventBytes: 512 << 10, Batch: 1000, KeyPartBytes: 64, Connections: 10},
		Streams: []Stream{clicks, {
			Name: "impressions", Partitions: 8, Segment: "data.user", RetentionMS: 16 * dayMS,
			Ring:  Ring{AgeMS: 2000, Bytes: 128 << 20},
			Dedup: Dedup{WindowMS: 5 * minuteMS, MaxIDs: 1000},
			Time:  Time{SkewMS: minuteMS, Future: FutureClamp},
		}},
		Counters: []Counter{
			{Name: "seen", Stream: "impressions", Where: `type == "impression"`, Key: []string{"data.user", "data.ad"},
				Windows: []Window{{"1m", minuteMS}, {"1h", hourMS}, {"24h", dayMS}, {"7d", weekMS}},
				Measure: MeasureCount, LatenessMS: weekMS, DedupIDs: 5000},
			{Name: "by-user", Stream: "clicks", Key: []string{"data.user"}, Windows: []Window{{"1h30m", 90 * minuteMS}},
				Measure: MeasureCount, LatenessMS: dayMS, DedupIDs: 1_000_000},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got:\n%+v\nwant:\n%+v", got, want)
	}
}

func TestNothingGivenIsTheDefault(t *testing.T) {
	for _, source := range []string{"", "# nothing\n", "streams:\n", "streams: {}\ncounters: []\nlisten:\n", "streams: {events: {}}", "---\n"} {
		got, _, err := Parse("weir.yaml", []byte(source), nil)
		if err != nil {
			t.Errorf("%q: %v", source, err)
		} else if !reflect.DeepEqual(got, Default()) {
			t.Errorf("%q: got %+v; want %+v", source, got, Default())
		}
	}
	if got, _, err := Load("", none); err != nil || !reflect.DeepEqual(got, Default()) {
		t.Errorf("no file: got %+v, %v; want %+v", got, err, Default())
	}
}

func TestPrecedence(t *testing.T) {
	vars := map[string]string{"WEIR_DATA": "env", "WEIR_MEMORY": "3GiB", "WEIR_LISTEN_HTTP": "127.0.0.1:1", "WEIR_LIMITS_KEY_PART": "7", "WEIR_LISTEN_ADMIN": ""}
	env := func(name string) (string, bool) { value, ok := vars[name]; return value, ok }
	source := "data: file\nmemory: 2GiB\nlimits: {batch: 5}\nlisten: {admin: 127.0.0.1:2}\n"
	cfg, _, err := Parse("weir.yaml", []byte(source), env, Flag{"--data", "data", "flag"})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{cfg.Data, cfg.MemoryBytes, cfg.Listen.HTTP, cfg.Limits.KeyPartBytes, cfg.Limits.Batch, cfg.Limits.Connections, cfg.Listen.Admin}
	want := []any{"flag", int64(3 << 30), "127.0.0.1:1", 7, 5, defaultConnections, "127.0.0.1:2"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

func TestMistakesOfFlagsAndEnvironmentNameThem(t *testing.T) {
	env := func(name string) (string, bool) { return "lots", name == "WEIR_MEMORY" }
	_, _, err := Parse("weir.yaml", []byte("data: x\n"), env, Flag{"--listen", "listen.http", "0.0.0.0:1"}, Flag{"--color", "color", "red"})
	want := `cannot use the configuration: 3 mistakes

memory: want a size, got "lots"
    WEIR_MEMORY=lots
    cure: write a whole number and KiB, MiB or GiB, such as 64MiB; a number alone is bytes

color: not a setting that a flag can give
    --color red
    cure: set it in the file

listen.http: "0.0.0.0" is reached from other machines, and this version of Weir has neither passwords nor TLS
    --listen 0.0.0.0:1
    cure: listen on 127.0.0.1, or, if the network itself keeps strangers out, add listen.insecure: true`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

func TestUnreadableFiles(t *testing.T) {
	if _, _, err := Load(filepath.Join(t.TempDir(), "none.yaml"), none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v; want os.ErrNotExist", err)
	}
	name := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(name, []byte("# "+strings.Repeat("x", fileBytesMax)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, got := range []error{errOf(Load(name, none)), errOf(Parse(name, []byte("data: \xff"), none))} {
		var mistakes *Error
		if !errors.As(got, &mistakes) || len(mistakes.Mistakes) != 1 || mistakes.Mistakes[0].Line != 0 {
			t.Errorf("got %v; want one mistake about the file", got)
		}
	}
}

func errOf(_ *Config, _ []Mistake, err error) error { return err }

func TestTooManyAreNamedOnce(t *testing.T) {
	var streams, counters strings.Builder
	for i := range streamsMax + 2 {
		fmt.Fprintf(&streams, "  s%d: {partitions: 1}\n", i)
		fmt.Fprintf(&counters, "  - {name: c%d, stream: s0, key: [id], windows: [1h]}\n", i)
	}
	_, _, err := Parse("weir.yaml", []byte("memory: 64GiB\nstreams:\n"+streams.String()+"counters:\n"+counters.String()), none)
	var mistakes *Error
	if !errors.As(err, &mistakes) || len(mistakes.Mistakes) != 2 ||
		mistakes.Mistakes[0].Path != "streams.s256" || mistakes.Mistakes[1].Path != "counters[256]" {
		t.Errorf("got %v; want one mistake for streams and one for counters", err)
	}
}

func TestAliases(t *testing.T) {
	source := "memory: &big 2GiB\nlimits: &none\nstreams:\n  a: &a {ring: {bytes: &ring 64MiB}}\n  b: *a\n  c: {ring: {bytes: *ring}}\n"
	cfg, _, err := Parse("weir.yaml", []byte(source), none)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range cfg.Streams {
		if s.Ring.Bytes != 64<<20 {
			t.Errorf("stream %s: got a ring of %d bytes; want that of a", s.Name, s.Ring.Bytes)
		}
	}
}

// TestPathsAndConditionsAreCompiled leaves the messages to the packages that write them.
func TestPathsAndConditionsAreCompiled(t *testing.T) {
	source := "streams: {events: {segment: 'data..a'}}\ncounters: [{name: c, stream: events, key: ['data.'], windows: [1h], where: 'type =='}]\n"
	_, _, err := Parse("weir.yaml", []byte(source), none)
	var mistakes *Error
	if !errors.As(err, &mistakes) {
		t.Fatalf("got %v; want mistakes", err)
	}
	var got []string
	for _, m := range mistakes.Mistakes {
		got = append(got, m.Path)
	}
	want := []string{"streams.events.segment", "counters[0].key[0]", "counters[0].where"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v; want %v:\n%v", got, want, err)
	}
}

func TestSenselessFilesAreRefusedBriefly(t *testing.T) {
	for _, unit := range []string{"[", "{a: ", "- ", "? ", "a: &a &a &a &a ", "!!str ", "a: {b: c}\n"} {
		source := strings.Repeat(unit, min(fileBytesMax/len(unit), 2000))
		err := errOf(Parse("weir.yaml", []byte(source), none))
		var mistakes *Error
		if !errors.As(err, &mistakes) || len(err.Error()) > 32<<10 {
			t.Errorf("%q many times: got %v; want mistakes on a few pages", unit, err)
		}
	}
}

// FuzzParse wants no panic, and mistakes that lie inside the file and say something.
func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, input := range inputs {
		source, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if len(source) > 4096 {
			return // the parser's time grows faster than its input
		}
		cfg, warnings, err := Parse("weir.yaml", source, environment)
		if err == nil {
			if _, err := cfg.Divide(); err != nil {
				t.Fatalf("loaded, but %v", err)
			}
			checkPlaces(t, source, warnings)
			return
		}
		var mistakes *Error
		if !errors.As(err, &mistakes) || len(mistakes.Mistakes) == 0 || err.Error() == "" {
			t.Fatalf("got %v; want mistakes", err)
		}
		checkPlaces(t, source, mistakes.Mistakes)
	})
}

func checkPlaces(t *testing.T, source []byte, list []Mistake) {
	t.Helper()
	lines := strings.Count(string(source), "\n") + 1
	for _, m := range list {
		if m.Line < 0 || m.Line > lines || (m.Line > 0) != (m.Column > 0) || m.Message == "" || m.Cure == "" {
			t.Fatalf("got %+v in a file of %d lines", m, lines)
		}
	}
}
