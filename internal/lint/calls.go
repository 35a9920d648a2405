package lint

import (
	"fmt"
	"go/ast"
	"path"
	"strconv"
)

// ban is a function that is not called, and what to do instead.
type ban struct {
	pkg     string   // import path
	names   []string // empty: everything in the package
	instead string
	applies func(where place) bool
}

// place is where a call stands.
type place struct {
	dir     string
	rank    int // index in layers; -1: none
	test    bool
	command bool // the package is a main: it owns the process and its terminal
	virtual bool // the file uses testing/synctest, where time is virtual
}

// engine says that the code has to work with any clock and file system: it is in the layers up to counting.
func (w place) engine() bool { return w.rank >= 0 && w.rank <= countingLayer && !w.test }

func bans() []ban {
	return []ban{
		{"time", []string{"Now", "Since", "Until"}, "ask the clock.Clock that was passed in", func(w place) bool {
			return w.engine() && w.dir != "internal/clock"
		}},
		{"time", []string{"Sleep"}, "wait for the event itself, or use testing/synctest", func(w place) bool { return w.test && !w.virtual }},
		{"time", []string{"Sleep"}, "select on a timer and on what ends the wait", func(w place) bool { return !w.test && !w.command }},
		{"fmt", []string{"Print", "Println", "Printf"}, "return it, write to the io.Writer or log to the *slog.Logger that was passed in (tests: t.Log)", func(w place) bool { return !w.command }},
		{"log", nil, "log to the *slog.Logger that was passed in", func(place) bool { return true }},
		{"log/slog", []string{"Debug", "Info", "Warn", "Error", "Log", "Default", "SetDefault"}, "log to the *slog.Logger that was passed in", func(w place) bool { return !w.command }},
		{"os", []string{"Exit"}, "return an error and let main decide", func(w place) bool { return !w.command && !w.test }},
		{"os", []string{"Open", "OpenFile", "Create", "ReadFile", "WriteFile", "Mkdir", "MkdirAll", "Remove", "RemoveAll", "Rename", "ReadDir"}, "go through the vfs.FS that was passed in", place.engine},
		{"context", []string{"TO" + "DO"}, "pass the caller's context", func(place) bool { return true }},
	}
}

// CheckCalls finds calls of what is banned where they stand, init functions, and panics.
func CheckCalls(t *Tree) []Finding {
	rank := map[string]int{}
	for i, l := range layers() {
		for _, p := range l.packages {
			rank[p] = i
		}
	}
	var found []Finding
	t.goFiles(func(f *File) {
		where := place{dir: f.Package(), rank: -1, test: f.Test, command: f.AST.Name.Name == "main"}
		if r, ok := rank[where.dir]; ok {
			where.rank = r
			where.test = where.test || r == len(layers())-1 && !where.command
		}
		imports := importNames(f.AST)
		_, where.virtual = imports["synctest"]
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if message := judgeNode(n, imports, where); message != "" {
				found = append(found, Finding{f.Path, t.line(n.Pos()), message})
			}
			return true
		})
	})
	return found
}

// importNames maps the names that a file uses for packages to their paths.
func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = full
	}
	return names
}

func judgeNode(n ast.Node, imports map[string]string, where place) string {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Name.Name == "init" && n.Recv == nil {
			return "an init function: do it in the constructor of what needs it"
		}
	case *ast.CallExpr:
		return judgeBuiltin(n, where)
	case *ast.SelectorExpr:
		return judgeSelector(n, imports, where)
	}
	return ""
}

func judgeBuiltin(n *ast.CallExpr, where place) string {
	name, ok := n.Fun.(*ast.Ident)
	if !ok || name.Obj != nil { // Obj: a function of this file that hides the builtin
		return ""
	}
	switch {
	case name.Name == "panic" && !where.test && where.dir != "internal/invariant" && !isAbort(n):
		return "panic: return an error; for a mistake of the program itself call invariant.Check"
	case name.Name == "print" || name.Name == "println":
		return name.Name + ": log to the *slog.Logger that was passed in"
	}
	return ""
}

// isAbort recognises panic(http.ErrAbortHandler), which is how net/http wants a reply to be cut off.
func isAbort(n *ast.CallExpr) bool {
	if len(n.Args) != 1 {
		return false
	}
	arg, ok := n.Args[0].(*ast.SelectorExpr)
	return ok && arg.Sel.Name == "ErrAbortHandler"
}

// judgeSelector looks at every mention, not only at calls: a banned function can be passed on as a value too.
func judgeSelector(n *ast.SelectorExpr, imports map[string]string, where place) string {
	name, ok := n.X.(*ast.Ident)
	if !ok || name.Obj != nil { // Obj: a variable that hides the package
		return ""
	}
	for _, b := range bans() {
		if imports[name.Name] == b.pkg && (b.names == nil || contains(b.names, n.Sel.Name)) && b.applies(where) {
			return fmt.Sprintf("%s.%s: %s", b.pkg, n.Sel.Name, b.instead)
		}
	}
	return ""
}
