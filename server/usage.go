package server

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// usageEveryMS is how old the figures of the disk may be: walking the folder for every scrape would cost more than it
// tells.
const usageEveryMS = 2000

// usage is how much disk a folder takes and has left.
type usage struct {
	folder string

	mu struct {
		sync.Mutex
		asOfMS int64
		last   diskUsage
	}
}

type diskUsage struct{ used, free int64 }

func (u *usage) disk(nowMS int64) diskUsage {
	u.mu.Lock()
	defer u.mu.Unlock()
	if age := nowMS - u.mu.asOfMS; u.mu.asOfMS != 0 && age >= 0 && age < usageEveryMS {
		return u.mu.last
	}
	u.mu.asOfMS = nowMS
	u.mu.last = diskUsage{used: folderBytes(u.folder)}
	var stat syscall.Statfs_t
	if syscall.Statfs(u.folder, &stat) == nil {
		u.mu.last.free = int64(stat.Bavail) * stat.Bsize
	}
	return u.mu.last
}

// folderBytes adds up the files below folder. Files that vanish meanwhile, as LSM files do, count nothing.
func folderBytes(folder string) int64 {
	var total int64
	_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}

// residentBytes is the memory that the process holds, as the kernel counts it; 0 where it does not say.
func residentBytes() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(statm)
	const resident = 1
	if len(fields) <= resident {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[resident]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
