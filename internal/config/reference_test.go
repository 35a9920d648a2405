package config

import (
	"os"
	"strings"
	"testing"
)

const reference = "../../docs/reference/configuration.md"

func readReference(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestReferenceListsEverySetting holds the page to the code: a setting that nobody can read about does not exist.
func TestReferenceListsEverySetting(t *testing.T) {
	page := readReference(t)
	r := &reader{}
	var want []string
	for _, section := range []string{"", "listen", "limits"} {
		for _, f := range r.settings(section) {
			path := join(section, f.name)
			want = append(want, "`"+path+"`", "`WEIR_"+strings.ToUpper(strings.ReplaceAll(path, ".", "_"))+"`", "\n| `"+f.name+"` |")
		}
	}
	for _, f := range append(r.streamFields(&Stream{}), r.counterFields(&Counter{})...) {
		switch f.name {
		case "ring":
			want = append(want, "\n| `ring.age` |", "\n| `ring.bytes` |")
		case "dedup":
			want = append(want, "\n| `dedup.window` |", "\n| `dedup.max_ids` |")
		case "time":
			want = append(want, "\n| `time.skew` |", "\n| `time.future` |", "\n| `time.unit_check` |")
		default:
			want = append(want, "\n| `"+f.name+"` |")
		}
	}
	for _, text := range want {
		if !strings.Contains(page, text) {
			t.Errorf("%s does not say %q", reference, strings.TrimSpace(text))
		}
	}
}

func TestExamplesOfTheReferenceLoad(t *testing.T) {
	blocks := strings.Split(readReference(t), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("got no examples")
	}
	for _, block := range blocks {
		source, _, _ := strings.Cut(block, "```")
		if _, warnings, err := Parse(reference, []byte(source), none); err != nil || len(warnings) > 0 {
			t.Errorf("%v %v\n%s", err, warnings, source)
		}
	}
}
