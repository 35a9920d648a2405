package lint

import (
	"strings"
	"testing"
	"testing/fstest"
)

// bad is one small tree that breaks one rule, or, with an empty want, keeps it.
type bad struct {
	name string
	path string
	text string
	want string // part of the only finding
}

func checkAll(t *testing.T, check func(*Tree) []Finding, cases []bad) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found := check(load(t, fstest.MapFS{c.path: {Data: []byte(c.text)}}))
			expect(t, found, c.want)
		})
	}
}

func load(t *testing.T, files fstest.MapFS) *Tree {
	t.Helper()
	tree, err := Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func expect(t *testing.T, found []Finding, want string) {
	t.Helper()
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("got %v; want nothing", found)
	case want != "" && len(found) != 1:
		t.Errorf("got %v; want one finding with %q", found, want)
	case want != "" && !strings.Contains(found[0].String(), want):
		t.Errorf("got %q; want it to contain %q", found[0], want)
	}
}

func importing(name string) string { return "package p\n\nimport _ \"" + name + "\"\n" }

func TestLayers(t *testing.T) {
	checkAll(t, CheckLayers, []bad{
		{"up", "internal/slide/a.go", importing(Module + "/internal/counter"), "a.go:3: internal/counter is in a layer above"},
		{"down", "internal/counter/a.go", importing(Module + "/internal/slide"), ""},
		{"sideways", "internal/state/a.go", importing(Module + "/internal/eventlog"), "internal/eventlog is in the same layer"},
		{"sideways and meant", "internal/eventlog/a.go", importing(Module + "/internal/ring"), ""},
		{"a test may look up", "internal/slide/a_test.go", importing(Module + "/internal/counter"), ""},
		{"no layer", "internal/novelty/a.go", "package novelty\n", "internal/novelty: the package has no layer"},
		{"engine outside its owners", "internal/counter/a.go", importing("github.com/cockroachdb/pebble/v2"), "only internal/eventlog, internal/state import"},
		{"engine in its owner", "internal/state/a.go", importing("github.com/cockroachdb/pebble/v2"), ""},
		{"file system interface", "internal/counter/a.go", importing("github.com/cockroachdb/pebble/v2/vfs"), ""},
		{"metrics library", "internal/resp/a.go", importing("github.com/prometheus/client_golang/prometheus"), "only internal/metrics, internal/api import"},
		{"impure", "internal/slide/a.go", importing("golang.org/x/sys/unix"), "the pure layer imports golang.org/x/sys/unix"},
		{"pure enough", "internal/slide/a.go", importing("github.com/zeebo/xxh3"), ""},
	})
}

func TestTablesOfAnEmptyTree(t *testing.T) {
	found := CheckTables(load(t, fstest.MapFS{}))
	want := len(sideways())
	for _, l := range layers() {
		want += len(l.packages)
	}
	if len(found) != want {
		t.Errorf("got %d findings; want one for each of %d entries: %v", len(found), want, found)
	}
}

func TestNames(t *testing.T) {
	checkAll(t, CheckNames, []bad{
		{"vague", "internal/util/a.go", "package util\n", "internal/util: the package's name says nothing"},
		{"vague in disguise", "internal/ring/a.go", "package helpers\n", "says nothing"},
		{"another system's word", "internal/ring/a.go", "package ring\n\ntype ChunkManager struct{}\n", "type ChunkManager: not \"manager\""},
		{"good", "internal/ring/a.go", "package ring\n\ntype Chunk struct{}\n", ""},
	})
}

func TestPackageComments(t *testing.T) {
	checkAll(t, CheckPackageComments, []bad{
		{"none", "internal/ring/a.go", "package ring\n", "the package has no comment"},
		{"another beginning", "internal/ring/a.go", "// This is the ring.\npackage ring\n", `begins with "This is the"`},
		{"no sentence", "internal/ring/a.go", "// Package ring keeps events\n//\n// More.\npackage ring\n", "no sentence"},
		{"good", "internal/ring/a.go", "// Package ring keeps events.\npackage ring\n", ""},
		{"good command", "cmd/weir/a.go", "// Command weir runs a node.\npackage main\n", ""},
		{"only tests", "internal/ring/a_test.go", "package ring\n", ""},
	})
}

func TestTwoPackageComments(t *testing.T) {
	comment := []byte("// Package ring keeps events.\npackage ring\n")
	tree := load(t, fstest.MapFS{"internal/ring/a.go": {Data: comment}, "internal/ring/b.go": {Data: comment}})
	expect(t, CheckPackageComments(tree), "b.go: a second package comment: keep the one in internal/ring/a.go")
}

func calling(pkg, statement string) string {
	return "package p\n\nimport \"" + pkg + "\"\n\nfunc f() {\n\t" + statement + "\n}\n"
}

func TestCalls(t *testing.T) {
	checkAll(t, CheckCalls, []bad{
		{"clock in the engine", "internal/state/a.go", calling("time", "time.Now()"), "a.go:6: time.Now: ask the clock.Clock"},
		{"clock passed on", "internal/state/a.go", calling("time", "use(time.Now)"), "time.Now: ask the clock.Clock"},
		{"clock under another name", "internal/state/a.go", strings.Replace(calling("time", "t.Since(x)"), "import ", "import t ", 1), "time.Since: ask"},
		{"clock in a server", "internal/api/a.go", calling("time", "time.Now()"), ""},
		{"clock in a test", "internal/state/a_test.go", calling("time", "time.Now()"), ""},
		{"hidden by a variable", "internal/state/a.go", calling("time", "time := other{}; time.Now()"), ""},
		{"sleep in a test", "internal/api/a_test.go", calling("time", "time.Sleep(1)"), "wait for the event itself"},
		{"sleep in virtual time", "internal/api/a_test.go", "package p\n\nimport (\n\t\"testing/synctest\"\n\t\"time\"\n)\n\nfunc f() { synctest.Wait(); time.Sleep(1) }\n", ""},
		{"sleep in a server", "internal/api/a.go", calling("time", "time.Sleep(1)"), "select on a timer"},
		{"print", "internal/api/a.go", calling("fmt", "fmt.Println(1)"), "fmt.Println: return it"},
		{"print in a test", "internal/api/a_test.go", calling("fmt", "fmt.Println(1)"), "tests: t.Log"},
		{"print of a command", "cmd/weir/a.go", strings.Replace(calling("fmt", "fmt.Println(1)"), "package p", "package main", 1), ""},
		{"builtin print", "internal/api/a.go", "package p\n\nfunc f() { println(1) }\n", "println: log"},
		{"old log", "cmd/weir/a.go", calling("log", "log.Fatal(1)"), "log.Fatal: log to the *slog.Logger"},
		{"global logger", "internal/api/a.go", calling("log/slog", "slog.Info(\"x\")"), "log/slog.Info"},
		{"passed logger", "internal/api/a.go", calling("log/slog", "var l *slog.Logger; l.Info(\"x\")"), ""},
		{"exit", "internal/api/a.go", calling("os", "os.Exit(1)"), "os.Exit: return an error"},
		{"file past the file system", "internal/state/a.go", calling("os", "os.Rename(a, b)"), "os.Rename: go through the vfs.FS"},
		{"init", "internal/api/a.go", "package p\n\nfunc init() {}\n", "an init function"},
		{"method named init", "internal/api/a.go", "package p\n\nfunc (x *T) init() {}\n", ""},
		{"panic", "internal/api/a.go", "package p\n\nfunc f() { panic(1) }\n", "panic: return an error"},
		{"panic of an invariant", "internal/invariant/a.go", "package p\n\nfunc f() { panic(1) }\n", ""},
		{"panic of net/http", "internal/api/a.go", calling("net/http", "panic(http.ErrAbortHandler)"), ""},
		{"own function of that name", "internal/api/a.go", "package p\n\nfunc panic(int) {}\n\nfunc f() { panic(1) }\n", ""},
	})
}

func lines(n int) string { return strings.Repeat("\n", n) }

func TestSizes(t *testing.T) {
	longFile := "package p\n" + lines(fileLinesMax)
	longFunc := "package p\n\nfunc (t *T[K]) Long() {" + lines(functionLinesMax) + "}\n"
	cases := []struct{ name, path, text, ratchet, want string }{
		{"file", "a.go", longFile, "", "the file has 601 lines, more than 600"},
		{"file of a test", "a_test.go", longFile, "", "the file has 601 lines"},
		{"function", "a.go", longFunc, "", "a.go:3: func T.Long has 71 lines, more than 70"},
		{"function of a test", "a_test.go", longFunc, "", ""},
		{"excepted", "a.go", longFunc, "a.go T.Long 71: reasons", ""},
		{"grown", "a.go", longFunc, "a.go T.Long 70: reasons", "more than 70"},
		{"shrunk", "a.go", longFunc, "# why\n\na.go T.Long 80: reasons", "ratchet.txt:3: a.go T.Long has become shorter: lower 80 to 71"},
		{"short again", "a.go", "package p\n", "a.go 700: reasons", "a.go needs no exception any more"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ratchet, err := ParseRatchet([]byte(c.ratchet))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, CheckSizes(load(t, fstest.MapFS{c.path: {Data: []byte(c.text)}}), ratchet), c.want)
		})
	}
}

func TestRatchetNeedsReasons(t *testing.T) {
	for _, text := range []string{"a.go 700", "a.go 700:", "700: reasons", "a.go many: reasons", "a b c 7: reasons"} {
		if _, err := ParseRatchet([]byte(text)); err == nil {
			t.Errorf("got no error for %q", text)
		}
	}
}

func TestText(t *testing.T) {
	checkAll(t, CheckText, []bad{
		{"unfinished", "a.go", "package p\n\n// TO" + "DO: more\n", "a.go:3: TO" + "DO: finish it"},
		{"unfinished prose", "docs/a.md", "FIX" + "ME", "finish it"},
		{"part of a word", "a.md", "TO" + "DOS", ""},
		{"a machine's path", "scripts/a", "cd /ro" + "ot/weir", "a path of one machine"},
		{"somebody's path", "a.md", "see `/ho" + "me/ann/weir`", "a path of one machine"},
		{"a URL", "a.md", "https://example.org/ho" + "me/ann/weir", ""},
	})
}

func TestFormat(t *testing.T) {
	checkAll(t, CheckFormat, []bad{
		{"not formatted", "a.go", "package p\nfunc  f() {}\n", "run make fmt"},
		{"formatted", "a.go", "package p\n\nfunc f() {}\n", ""},
	})
}

func TestLinks(t *testing.T) {
	tree := load(t, fstest.MapFS{
		"README.md":           {Data: []byte("[a](docs/a.md#part) [folder](docs) [site](https://example.org/x.md) [here](#there)")},
		"docs/a.md":           {Data: []byte("[up](../README.md) [nowhere](b.md) [itself](a.md)")},
		"docs/deep/lonely.md": {Data: []byte("[itself](lonely.md)")},
	})
	found := CheckLinks(tree)
	if len(found) != 2 {
		t.Fatalf("got %v; want two findings", found)
	}
	expect(t, found[:1], "docs/a.md:1: the link b.md leads nowhere")
	expect(t, found[1:], "docs/deep/lonely.md: no page links here")
}

func TestLoadSkipsWhatIsNotOurs(t *testing.T) {
	tree := load(t, fstest.MapFS{
		".git/config":              {Data: []byte("x")},
		"weir-data/LOG":            {Data: []byte("x")},
		"internal/a/golden":        {Data: []byte{0, 1}},
		"internal/a/testdata/b.go": {Data: []byte("not Go")},
	})
	if len(tree.Files) != 1 || tree.Files[0].AST != nil {
		t.Errorf("got %v; want testdata's file alone, unparsed", tree.Files)
	}
	if _, err := Load(fstest.MapFS{"a.go": {Data: []byte("not Go")}}); err == nil {
		t.Error("got no error for a Go file that does not parse")
	}
}
