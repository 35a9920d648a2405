//go:build !linux

package main

import "time"

func preferThread() error { return nil }

func sleepThread(d time.Duration) { time.Sleep(d) }
