package server

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockName is the file whose lock says that a process works in the folder. The file stays; only the lock counts, and the
// kernel lets go of it when the process ends, however that happens.
const lockName = "LOCK"

func flockFolder(folder string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(folder, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data folder: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("cannot use data folder %s: another process has it in use (%w); stop that one, or choose another folder with --data", folder, err)
	}
	return func() { _ = file.Close() }, nil
}
