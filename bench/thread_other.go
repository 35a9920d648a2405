//go:build !linux

package main

import (
	"syscall"
	"time"
)

func preferThread() error { return nil }

func sleepThread(d time.Duration) { time.Sleep(d) }

func readThread(fd int, p []byte) (int, error) { return syscall.Read(fd, p) }

func writeThread(fd int, p []byte) (int, error) { return syscall.Write(fd, p) }
