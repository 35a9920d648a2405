// Package flights is three million real flights as events for tests: real skew, real daily and weekly rhythm, many
// events in one minute, none of which a generator imitates well.
//
// The rows come from a Parquet file that is not part of the repository. Where it is absent, Load generates a stand-in
// with the same columns, and Table.Origin says so: a test that used it must not be taken for one on real data.
package flights

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	// PathVariable names the environment variable that holds the Parquet file's path.
	PathVariable = "WEIR_FLIGHTS"
	// RowsMax is how many rows Load returns at most: the size of the real file and of the stand-in.
	RowsMax = 3_000_000
)

// defaultPath is where the file lies, seen from the root of the module.
var defaultPath = filepath.Join("..", "shared", "data", "flights-3m.parquet")

// Flight is one row. Airports are indices into Table.Airports.
type Flight struct {
	Millis      int64 // departure, ms since the epoch; whole minutes
	Delay       int32 // minutes; negative: early
	Distance    int32 // miles
	Source      uint16
	Destination uint16
}

// Table holds the flights in order of departure.
type Table struct {
	Flights  []Flight
	Airports []string
	Origin   string // where the rows came from, for the log of the test
	Real     bool   // false: generated
}

// Load returns the flights of $WEIR_FLIGHTS, else of the file beside the repository, else the stand-in. A file that is
// named by the variable and cannot be read is an error, never a reason for the stand-in.
func Load() (*Table, error) {
	path, named := os.LookupEnv(PathVariable)
	if !named || path == "" {
		root, err := moduleRoot()
		if err != nil {
			return nil, err
		}
		path, named = filepath.Join(root, defaultPath), false
	}
	table, err := readParquet(path)
	switch {
	case err == nil:
		table.Origin, table.Real = "the flights of "+filepath.Base(path), true
	case !named && errors.Is(err, fs.ErrNotExist):
		table = generate(RowsMax)
		table.Origin = "a GENERATED STAND-IN for the flights: set " + PathVariable + " to test on real data"
	default:
		return nil, fmt.Errorf("cannot read the flights: %w", err)
	}
	slices.SortStableFunc(table.Flights, func(a, b Flight) int { return cmp.Compare(a.Millis, b.Millis) })
	return table, nil
}

// moduleRoot walks up from the working directory, which for a test is its package, to the folder that holds go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("cannot find go.mod above the working directory")
		}
		dir = parent
	}
}

// AppendEvent appends row as one line of NDJSON, newline included. The id is the row's number: unique, and the same
// for every copy of the row.
func (t *Table) AppendEvent(dst []byte, row int) []byte {
	f := &t.Flights[row]
	dst = append(dst, `{"id":"f`...)
	dst = strconv.AppendInt(dst, int64(row), 10)
	dst = append(dst, `","type":"flight","time":`...)
	dst = strconv.AppendInt(dst, f.Millis, 10)
	dst = append(dst, `,"data":{"origin":"`...)
	dst = append(dst, t.Airports[f.Source]...)
	dst = append(dst, `","destination":"`...)
	dst = append(dst, t.Airports[f.Destination]...)
	dst = append(dst, `","delay":`...)
	dst = strconv.AppendInt(dst, int64(f.Delay), 10)
	dst = append(dst, `,"distance":`...)
	dst = strconv.AppendInt(dst, int64(f.Distance), 10)
	return append(dst, "}}\n"...)
}
