// Package orderfs is a file system in which a power cut keeps the name of Pebble's MANIFEST if it keeps what points to it.
//
// Pebble creates a new MANIFEST and the marker that names it, and then syncs the folder once. On a file system that keeps names in
// any order, a power cut between the two would leave a store that names a MANIFEST it does not have.
package orderfs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// markerPrefix begins the names of the empty files by which Pebble says which MANIFEST is the current one.
const markerPrefix = "marker."

// Wrap returns fs with that promise.
func Wrap(fs vfs.FS) vfs.FS { return ordered{fs} }

type ordered struct{ vfs.FS }

// Create implements vfs.FS.
func (fs ordered) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(fs.PathBase(name), markerPrefix) {
		if err := fs.syncFolder(fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return fs.FS.Create(name, category)
}

func (fs ordered) syncFolder(dir string) error {
	folder, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("cannot open folder %s: %w", dir, err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("cannot sync folder %s: %w", dir, err)
	}
	return nil
}
