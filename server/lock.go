package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockName is the file whose lock says that a process works in the folder. The file stays; only the lock counts, and the
// kernel lets go of it when the process ends, however that happens.
const lockName = "LOCK"

// takeFolder makes folder, if it is not there, and takes it for this process.
func takeFolder(folder string) (unlock func(), err error) {
	if err := makeFolder(filepath.Clean(folder)); err != nil {
		return nil, fmt.Errorf("cannot make the data folder: %w", err)
	}
	return lockFolder(folder)
}

// makeFolder makes folder and those above it that are missing, each with a durable name: what is stored below is only as
// durable as that.
func makeFolder(folder string) error {
	info, err := os.Stat(folder)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a folder", folder)
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	above := filepath.Dir(folder)
	if err := makeFolder(above); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return syncFolder(above)
}

func syncFolder(folder string) error {
	file, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("cannot sync folder %s: %w", folder, err)
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("cannot sync folder %s: %w", folder, err)
	}
	return nil
}

func lockFolder(folder string) (unlock func(), err error) {
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
