package lint

import (
	"fmt"
	"strconv"
	"strings"
)

// layer is one storey of the house. A package imports only from layers below its own.
type layer struct {
	name     string
	packages []string // folders from the root
}

// layers are ordered from the ground. ARCHITECTURE.md says what each package is for.
func layers() []layer {
	return []layer{
		{"pure: no clock, no I/O, no goroutines", []string{
			"internal/clock", "internal/event", "internal/invariant", "internal/jsonscan", "internal/path", "internal/shard", "internal/slide",
		}},
		{"bytes and keys", []string{
			"internal/cloudevents", "internal/eventlog", "internal/orderfs", "internal/osthread", "internal/predicate", "internal/ring", "internal/state", "internal/traffic",
		}},
		{"counting", []string{"internal/counter"}},
		{"what the process is made of", []string{
			"internal/api", "internal/client", "internal/config", "internal/dash", "internal/metrics", "internal/resp",
		}},
		{"the process", []string{"server"}},
		{"the binary", []string{"cmd/weir"}},
		{"tests", []string{"bench", "e2e", "internal/flights", "internal/lint", "internal/oracle", "internal/services"}},
	}
}

// pureLayer and countingLayer are indexes of layers that rules speak of.
const (
	pureLayer     = 0
	countingLayer = 2
)

// sideways are the imports inside one layer that are meant, each with its reason.
func sideways() map[string]string {
	return map[string]string{
		"internal/path internal/event":       "a path leads into an event",
		"internal/path internal/jsonscan":    "and through its JSON",
		"internal/eventlog internal/ring":    "the ring is the log's newest tier",
		"internal/eventlog internal/orderfs": "both stores need the promise",
		"internal/state internal/orderfs":    "both stores need the promise",
		"internal/state internal/osthread":   "writing an epoch lets others have the core",
	}
}

// owner says which packages may import a dependency; tests may always.
type owner struct {
	prefix   string
	packages []string
	instead  string
}

func owners() []owner {
	return []owner{
		// The file system is an interface that everything above passes down; the engine is not.
		{"github.com/cockroachdb/pebble/v2/vfs", []string{"internal/eventlog", "internal/orderfs", "internal/state", "internal/counter", "server", "cmd/weir"}, "let what is above pass in the file system"},
		{"github.com/cockroachdb/pebble", []string{"internal/eventlog", "internal/state"}, "go through eventlog or state"},
		{"github.com/prometheus/", []string{"internal/metrics", "internal/api"}, "report through a struct of functions that metrics subscribes to"},
		{"github.com/goccy/go-yaml", []string{"internal/config"}, "read settings from config.Config"},
		{"github.com/expr-lang/expr", []string{"internal/predicate"}, "go through predicate"},
		{"github.com/spf13/cobra", []string{"cmd/weir"}, "keep commands in cmd/weir"},
	}
}

// pureDependencies may be imported by the pure layer besides the standard library.
func pureDependencies() []string { return []string{"github.com/zeebo/xxh3"} }

// CheckLayers finds imports that lead up, sideways or past a dependency's owner, and packages without a layer.
func CheckLayers(t *Tree) []Finding {
	rank := map[string]int{}
	for i, l := range layers() {
		for _, p := range l.packages {
			rank[p] = i
		}
	}
	testLayer := len(layers()) - 1
	var found []Finding
	unplaced := map[string]bool{}
	t.goFiles(func(f *File) {
		own, placed := rank[f.Package()]
		if !placed && !unplaced[f.Package()] {
			unplaced[f.Package()] = true
			found = append(found, Finding{f.Package(), 0, "the package has no layer: name it in internal/lint/layers.go, below everything that imports it"})
		}
		if !placed || f.Test || own == testLayer {
			return
		}
		for _, spec := range f.AST.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			if message := judgeImport(rank, own, f.Package(), name); message != "" {
				found = append(found, Finding{f.Path, t.line(spec.Pos()), message})
			}
		}
	})
	return found
}

// CheckTables finds entries of the tables above that nothing needs any more.
func CheckTables(t *Tree) []Finding {
	const here = "internal/lint/layers.go"
	edges := map[string]bool{}
	t.goFiles(func(f *File) {
		for _, name := range importNames(f.AST) {
			if local, ok := strings.CutPrefix(name, Module+"/"); ok && !f.Test {
				edges[f.Package()+" "+local] = true
			}
		}
	})
	var found []Finding
	for _, l := range layers() {
		for _, p := range l.packages {
			if !t.dirs[p] {
				found = append(found, Finding{here, 0, "there is no package " + p + ": remove it from its layer"})
			}
		}
	}
	for edge := range sideways() {
		if !edges[edge] {
			found = append(found, Finding{here, 0, "no import goes " + strings.Replace(edge, " ", " -> ", 1) + ": remove it from the sideways imports"})
		}
	}
	return found
}

// judgeImport says what is wrong with the import of name by the package from, in layer own; empty: nothing.
func judgeImport(rank map[string]int, own int, from, name string) string {
	if local, ok := strings.CutPrefix(name, Module+"/"); ok {
		other, placed := rank[local]
		_, meant := sideways()[from+" "+local]
		switch {
		case !placed || other < own || meant || local == "internal/invariant":
			return "" // assertions are for everybody
		case other == own:
			return fmt.Sprintf("%s is in the same layer: move what both need below them, or name the edge with its reason in internal/lint/layers.go", local)
		default:
			return fmt.Sprintf("%s is in a layer above: pass in what is needed as a function or interface", local)
		}
	}
	if !strings.Contains(name, ".") {
		return "" // the standard library
	}
	if own == pureLayer && !contains(pureDependencies(), name) {
		return fmt.Sprintf("the pure layer imports %s: keep to the standard library and %s", name, strings.Join(pureDependencies(), ", "))
	}
	for _, o := range owners() {
		if !strings.HasPrefix(name, o.prefix) {
			continue
		}
		if contains(o.packages, from) {
			return ""
		}
		return fmt.Sprintf("only %s import %s: %s", strings.Join(o.packages, ", "), name, o.instead)
	}
	return ""
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}
