package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// wordy is an error that prints more than its text under %+v, as those of Pebble do: where it was made.
type wordy struct{}

func (wordy) Error() string { return "checksum mismatch" }

func (wordy) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte("checksum mismatch\nstack trace:")) }

func TestLogHasNoTraces(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		cmd := newRun()
		var out bytes.Buffer
		cmd.SetErr(&out)
		if err := cmd.Flags().Set("log-format", format); err != nil {
			t.Fatal(err)
		}
		logger, err := loggerOf(cmd)
		if err != nil {
			t.Fatal(err)
		}
		logger.Error("cannot read", "err", wordy{})
		if line := out.String(); !strings.Contains(line, "checksum mismatch") || strings.Contains(line, "trace") {
			t.Errorf("%s: got %q; want the error's text alone", format, line)
		}
	}
}
