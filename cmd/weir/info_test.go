package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestInfoIsReadable(t *testing.T) {
	const in = `{"now":1796083200000,"disk":{"full":false,"free_bytes":5},"counters":[{"lag":0,"name":"seen","newest":null,
		"partitions":[{"applied":2,"partition":0},{"applied":3,"partition":1}],"later":{"than":{"this":"version"}}}],"streams":[]}`
	const want = `now: 2026-12-01T00:00:00.000Z
streams: none
disk: free_bytes 5, full false
counters:
  - name: seen
    lag: 0
    newest: none
    later:
      than: this version
    partitions:
      - partition 0, applied 2
      - partition 1, applied 3
`
	var tree any
	if err := json.Unmarshal([]byte(in), &tree); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printTree(&out, tree, 0)
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
