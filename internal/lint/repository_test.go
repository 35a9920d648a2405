package lint

import (
	"os"
	"os/exec"
	"sort"
	"testing"
)

const root = "../.."

// TestRepository holds this repository to the rules.
func TestRepository(t *testing.T) {
	tree, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("testdata/ratchet.txt")
	if err != nil {
		t.Fatal(err)
	}
	ratchet, err := ParseRatchet(source)
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string]func(*Tree) []Finding{
		"layers":   CheckLayers,
		"tables":   CheckTables,
		"names":    CheckNames,
		"comments": CheckPackageComments,
		"calls":    CheckCalls,
		"sizes":    func(tree *Tree) []Finding { return CheckSizes(tree, ratchet) },
		"text":     CheckText,
		"format":   CheckFormat,
		"links":    CheckLinks,
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			found := check(tree)
			sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
			for _, f := range found {
				t.Error(f)
			}
		})
	}
}

// TestTools runs the analysers that are programs of their own. They build everything, which takes a while when nothing
// is cached.
func TestTools(t *testing.T) {
	if testing.Short() {
		t.Skip("the analysers build everything: not with -short")
	}
	for name, args := range map[string][]string{
		"vet":         {"vet", "./..."},
		"staticcheck": {"tool", "staticcheck", "./..."},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", cmd.Args, err, out)
			}
		})
	}
}
