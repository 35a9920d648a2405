package flights

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/parquet-go/parquet-go"
)

// rowsRead is how many rows are decoded at a time.
const rowsRead = 4096

// columns are the positions of the columns that are read, by what they are called in the file.
type columns struct{ date, delay, distance, origin, destination int }

// readParquet reads at most RowsMax rows. Rows without a date or an airport are left out.
func readParquet(path string) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("cannot open %s as Parquet: %w", path, err)
	}
	cols, err := findColumns(file.Schema())
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", path, err)
	}
	t := &Table{Flights: make([]Flight, 0, min(file.NumRows(), RowsMax))}
	names := airportIndex{table: t, index: map[string]uint16{}}
	for _, group := range file.RowGroups() {
		if err := readGroup(t, &names, cols, group); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, err)
		}
	}
	return t, nil
}

func findColumns(schema *parquet.Schema) (columns, error) {
	var c columns
	for name, into := range map[string]*int{
		"date": &c.date, "delay": &c.delay, "distance": &c.distance, "origin": &c.origin, "destination": &c.destination,
	} {
		leaf, ok := schema.Lookup(name)
		if !ok {
			return c, fmt.Errorf("no column %q", name)
		}
		*into = leaf.ColumnIndex
	}
	return c, nil
}

func readGroup(t *Table, names *airportIndex, cols columns, group parquet.RowGroup) error {
	rows := group.Rows()
	defer rows.Close()
	buf := make([]parquet.Row, rowsRead)
	for len(t.Flights) < RowsMax {
		n, err := rows.ReadRows(buf)
		for _, row := range buf[:n] {
			if len(t.Flights) == RowsMax {
				break
			}
			if err := appendRow(t, names, cols, row); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func appendRow(t *Table, names *airportIndex, cols columns, row parquet.Row) error {
	if row[cols.date].IsNull() || row[cols.origin].IsNull() || row[cols.destination].IsNull() {
		return nil
	}
	source, err := names.of(row[cols.origin].ByteArray())
	if err != nil {
		return err
	}
	destination, err := names.of(row[cols.destination].ByteArray())
	if err != nil {
		return err
	}
	const microsPerMilli = 1000
	t.Flights = append(t.Flights, Flight{
		Millis:      row[cols.date].Int64() / microsPerMilli,
		Delay:       int32(row[cols.delay].Int64()),
		Distance:    int32(row[cols.distance].Int64()),
		Source:      source,
		Destination: destination,
	})
	return nil
}

// airportIndex numbers the airports in the order in which they are met.
type airportIndex struct {
	table *Table
	index map[string]uint16
}

func (a *airportIndex) of(name []byte) (uint16, error) {
	if i, ok := a.index[string(name)]; ok {
		return i, nil
	}
	if len(a.table.Airports) > math.MaxUint16 {
		return 0, errors.New("more airports than 65,536")
	}
	i := uint16(len(a.table.Airports))
	a.index[string(name)] = i
	a.table.Airports = append(a.table.Airports, string(name))
	return i, nil
}
