package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The file that says how the events of a stream were routed: a line of JSON and a line with its checksum.
const (
	streamFile        = "STREAM"
	streamFileTmp     = "STREAM.tmp"
	streamFileVersion = 1
	streamFileMax     = 64 << 10 // bytes
)

type streamMeta struct {
	Version    int    `json:"version"`
	Stream     string `json:"stream"`
	Partitions int    `json:"partitions"`
	Segment    string `json:"segment"`
}

func (m streamMeta) encode() ([]byte, error) {
	line, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	line = append(line, '\n')
	return fmt.Appendf(line, "crc32c %08x\n", crc32.Checksum(line, castagnoli)), nil
}

var errStreamFile = errors.New("bad stream file")

func parseStreamMeta(src []byte) (m streamMeta, err error) {
	line, rest, found := bytes.Cut(src, []byte("\n"))
	sum, ok := bytes.CutPrefix(bytes.TrimSuffix(rest, []byte("\n")), []byte("crc32c "))
	if !found || !ok {
		return m, fmt.Errorf("%w: want a line of JSON and a line with its checksum", errStreamFile)
	}
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if got := crc32.Checksum(src[:len(line)+1], castagnoli); err != nil || uint64(got) != want {
		return m, fmt.Errorf("%w: got CRC-32C %08x; want %s", errStreamFile, got, sum)
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("%w: %w", errStreamFile, err)
	}
	if m.Version != streamFileVersion {
		return m, fmt.Errorf("%w: %w: got version %d; want %d", errStreamFile, ErrUnknownFormat, m.Version, streamFileVersion)
	}
	return m, nil
}

// checkStream compares the stream with the one that is stored. fresh: none is.
func checkStream(o *Options) (fresh bool, err error) {
	want := metaOf(o)
	path := o.FS.PathJoin(o.Dir, streamFile)
	stored, err := readSmallFile(o.FS, path)
	if oserror.IsNotExist(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read %s: %w", path, err)
	}
	got, err := parseStreamMeta(stored)
	switch {
	case errors.Is(err, ErrUnknownFormat):
		return false, fmt.Errorf("cannot read %s: %w", path, err)
	case err != nil:
		return false, fmt.Errorf("cannot read %s: %w: %w", path, ErrCorrupt, err)
	case got.Partitions != want.Partitions:
		return false, &StreamChanged{Stream: o.Stream, What: "partitions",
			Stored: strconv.Itoa(got.Partitions), Wanted: strconv.Itoa(want.Partitions)}
	case got.Segment != want.Segment:
		return false, &StreamChanged{Stream: o.Stream, What: "segment", Stored: got.Segment, Wanted: want.Segment}
	}
	return false, nil
}

// storeStream stores what checkStream compares. It is for after the partitions were made: where the file is, they are too,
// and one that is missing was lost.
func storeStream(o *Options) error {
	body, err := metaOf(o).encode()
	if err != nil {
		return err
	}
	return writeFileAtomic(o.FS, o.Dir, streamFileTmp, streamFile, body)
}

func metaOf(o *Options) streamMeta {
	return streamMeta{Version: streamFileVersion, Stream: o.Stream, Partitions: o.Partitions, Segment: o.Segment}
}

func readSmallFile(fs vfs.FS, path string) (body []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	body, err = io.ReadAll(io.LimitReader(f, streamFileMax+1))
	if err == nil && len(body) > streamFileMax {
		return nil, fmt.Errorf("file is too long: want at most %d bytes", streamFileMax)
	}
	return body, err
}

// writeFileAtomic makes dir/name hold body, or leaves it as it was, also through a power cut.
func writeFileAtomic(fs vfs.FS, dir, tmp, name string, body []byte) error {
	tmpPath := fs.PathJoin(dir, tmp)
	f, err := fs.Create(tmpPath, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("cannot create %s: %w", tmpPath, err)
	}
	_, err = f.Write(body)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", tmpPath, err)
	}
	if err := fs.Rename(tmpPath, fs.PathJoin(dir, name)); err != nil {
		return fmt.Errorf("cannot rename %s: %w", tmpPath, err)
	}
	return syncDir(fs, dir)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("cannot open folder %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("cannot sync folder %s: %w", dir, err)
	}
	return nil
}

// makeDirs creates dir and what is missing above it, and makes the new entries durable.
func makeDirs(fs vfs.FS, dir string) error {
	parents := []string{fs.PathDir(dir)} // always: who created it may not have come to sync it
	for at := fs.PathDir(dir); at != fs.PathDir(at); at = fs.PathDir(at) {
		_, err := fs.Stat(at)
		if err == nil {
			break
		}
		if !oserror.IsNotExist(err) {
			return fmt.Errorf("cannot look at folder %s: %w", at, err)
		}
		parents = append(parents, fs.PathDir(at))
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create folder %s: %w", dir, err)
	}
	for _, parent := range parents {
		if err := syncDir(fs, parent); err != nil {
			return err
		}
	}
	return nil
}
