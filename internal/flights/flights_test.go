package flights

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	table, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows, %d airports from %s", len(table.Flights), len(table.Airports), table.Origin)
	if len(table.Flights) == 0 || len(table.Airports) < 2 {
		t.Fatalf("got %d flights between %d airports", len(table.Flights), len(table.Airports))
	}
	if !slices.IsSortedFunc(table.Flights, func(a, b Flight) int { return int(a.Millis - b.Millis) }) {
		t.Error("the flights are not in order of departure")
	}
	for i, f := range table.Flights {
		if int(max(f.Source, f.Destination)) >= len(table.Airports) || f.Millis%minuteMillis != 0 {
			t.Fatalf("row %d: %+v", i, f)
		}
	}
}

func TestANamedFileThatIsMissingIsAnError(t *testing.T) {
	t.Setenv(PathVariable, filepath.Join(t.TempDir(), "absent.parquet"))
	if _, err := Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want the missing file", err)
	}
}

func TestTheStandInIsTheSameEveryTime(t *testing.T) {
	const rows = 10_000
	a, b := generate(rows), generate(rows)
	if !reflect.DeepEqual(a, b) {
		t.Fatal("two stand-ins differ")
	}
	perHour := [24]int{}
	for _, f := range a.Flights {
		if f.Source == f.Destination {
			t.Fatal("a flight to where it came from")
		}
		perHour[time.UnixMilli(f.Millis).UTC().Hour()]++
	}
	if perHour[12] < 4*perHour[0] {
		t.Errorf("no daily pattern: %v", perHour)
	}
}

func TestAppendEvent(t *testing.T) {
	table := generate(3)
	var event struct {
		ID, Type string
		Time     int64
		Data     struct {
			Origin, Destination string
			Delay, Distance     int32
		}
	}
	line := table.AppendEvent(nil, 2)
	if err := json.Unmarshal(line, &event); err != nil || line[len(line)-1] != '\n' {
		t.Fatalf("%q: %v", line, err)
	}
	f := table.Flights[2]
	if event.ID != "f2" || event.Type != "flight" || event.Time != f.Millis || event.Data.Delay != f.Delay ||
		event.Data.Distance != f.Distance || event.Data.Origin != table.Airports[f.Source] ||
		event.Data.Destination != table.Airports[f.Destination] {
		t.Errorf("%s does not tell %+v", line, f)
	}
}
